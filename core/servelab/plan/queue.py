"""More clients than the KV cache holds: not out of memory but a queue, as servelab.sched's simulator has it.

A plan becomes an engine of that simulator: its step costs are the planner's parts at the batch that runs, and the
arithmetic of prompts hides the reading of weights, or the other way round. A prompt takes of the engine what the fit
found that it takes from other clients (`mix`), and its first token comes as much later as the fit has it. The pool
holds as many sequences as the plan has room for. Clients ask again and again, with answers of half to one and a half
times the plan's length, so that they do not march in step; the first answer of each is left out, since they all begin
at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from servelab.plan import engines
from servelab.plan.plan import CHUNK, Answer
from servelab.plan.speed import parts, prompt_time
from servelab.sched.closed import closed
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.request import PS, Workload, column

BLOCK = 16
MOST = 1500
"""Requests that are simulated at most."""

GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, fill 0 to 1 evenly."""


@dataclass(frozen=True, slots=True)
class Queued:
    """What the simulator says of a plan: means in s, output tokens/s of the replica, clients that wait on average,
    preemptions, and of how many requests."""

    ttft: float
    tpot: float
    throughput: float
    waiting: float
    preempted: int
    n: int


def cost(answer: Answer) -> Cost:
    """The plan's steps as the simulator's coefficients. ValueError where it does not fit."""
    if answer.work is None:
        raise ValueError(f"the plan does not fit: {answer.memory.reason}")
    made, w = answer.plan, answer.work
    e = engines.family(made.engine, made.shape.kind)
    spent = parts(w, e)
    running, held = max(1.0, w.batch * made.layout.dp), made.prompt + made.output // 2
    token = e.mix * (w.prefill / e.prefill + w.prompt_sent / e.link) / made.prompt
    each = (spent["arithmetic"] + w.sent / e.link) / running
    fixed = spent["launch"] + spent["interconnect"] - w.sent / e.link
    ps = {
        "fixed": fixed, "weights": spent["weights"], "token": token, "seq": each,
        "context": spent["KV cache"] / running / held, "work": e.mix * w.attend / e.attend / (made.prompt**2 / 2),
    }  # fmt: skip
    return Cost(**{name: round(seconds * PS) for name, seconds in ps.items()})


def queue(answer: Answer) -> Queued:
    """The plan's clients through the simulator, three answers each and no more than MOST. ValueError as for `cost`."""
    made, room = answer.plan, answer.memory.capacity
    clients = min(made.clients, MOST // 3)
    scale = clients / made.clients  # of clients and room alike, where there are too many to simulate
    seqs = max(1, round(room * scale)) if scale < 1 else room
    held, whole = made.prompt + made.output // 2, made.prompt + made.output * 3 // 2
    pool = max(seqs * -(-held // BLOCK), -(-whole // BLOCK))
    engine = Engine(cost(answer), budget=max(CHUNK, min(seqs, clients)), seqs=min(seqs, clients), blocks=pool)
    n = 3 * clients
    outputs = column(max(1, round(made.output * (0.5 + i * GOLDEN % 1))) for i in range(n))
    work = Workload(column([0]) * n, column([made.prompt]) * n, outputs)
    log = closed(work, engine, clients)
    rest = range(clients, n)
    e = engines.family(made.engine, made.shape.kind)
    own = e.first + max(0.0, e.lead - e.mix) * prompt_time(answer.work, e) if answer.work else 0.0
    ttft = own + fmean(log.first[i] - log.work.arrival[i] for i in rest) / PS
    tpot = fmean((log.finish[i] - log.first[i]) / max(1, outputs[i] - 1) for i in rest) / PS
    took = own + fmean(log.finish[i] - log.work.arrival[i] for i in rest) / PS
    waited = fmean(log.admitted[i] - log.work.arrival[i] for i in rest) / PS
    throughput = made.clients * fmean(outputs[i] for i in rest) / took
    return Queued(ttft, tpot, throughput, made.clients * waited / took, sum(map(len, log.preempted)), len(rest))
