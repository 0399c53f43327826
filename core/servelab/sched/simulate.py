"""Requests through engines, iteration by iteration, with runs of equal decode steps in closed form.

At each boundary between steps: whoever has arrived joins the queue; every running sequence gets room for its next
token, and where the pool has no block left the last admitted one is preempted (its memory freed, to be computed again,
prompt and all it generated); then prompts, a chunk that was cut before the waiting ones, fill the budget while their
whole length fits the pool. This is vLLM v1's schedule(), with its rules of memory. An arrival at exactly a boundary is
seen there. An engine that overlaps its work with the GPU's decides one step ahead: it sees who had arrived when the
step before began.

A run of decode steps ends at the first boundary where anything may change: a sequence ends, a request arrives, or a
block is wanting. In between, nothing is decided, so k steps cost one evaluation of `cost.total`. `reference` does the
same one step at a time.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from servelab.sched.admission import Gate
from servelab.sched.engine import Engine
from servelab.sched.replica import FOREVER, Replica
from servelab.sched.request import Workload, column
from servelab.sched.routing import BLIND, Router, round_robin
from servelab.sched.speculate import Speculating

NEVER = -1
"""In place of a time that never came."""


@dataclass(frozen=True, slots=True)
class Log:
    """What happened; times in ps, NEVER where something did not happen.

    By request: `replica` (−1: refused, by a gate or because it cannot fit), `admitted` into its first step, `first`
    token, `finish`, prompt tokens `cached`. `steps[r]`: replica r's steps in order, seven numbers each: start, count,
    decodes, sequences charged for (a static batch pays for its empty slots), context tokens before, prefill tokens,
    duration of all. `stalls[r]`: (step row, decodes, ps): in the first step of that row so many decodes had waited so
    much longer for their token; row −1: one more gap. `preempted[r]`: (time, request, tokens generated). `chunks[r]`:
    (start, end, request, tokens), where detail was asked for; 0 tokens: back from host memory. `held[r]`: KV blocks in
    use in each step row (at the end of its last step), with detail too.
    """

    work: Workload
    engine: Engine
    replica: array[int]
    admitted: array[int]
    first: array[int]
    finish: array[int]
    cached: array[int]
    steps: tuple[array[int], ...]
    stalls: tuple[array[int], ...]
    preempted: tuple[array[int], ...]
    chunks: tuple[array[int], ...]
    held: tuple[array[int], ...]


def simulate(
    work: Workload, engine: Engine, replicas: int = 1, router: Router = round_robin, gate: Gate | None = None,
    detail: bool = False,
) -> Log:  # fmt: skip
    """Run the workload to its end; whom the `gate` refuses does not come back. ValueError for fewer than one replica.
    """
    log = blank(work, engine, replicas)
    fleet = crew(log, replicas, detail)
    inside: list[int] = []  # who was let in and has not left
    arrival, pool = work.arrival, engine.blocks * engine.block_size
    blind, choose = router in BLIND and not gate, router(fleet, work)
    for i in range(len(work)):
        if work.prompt[i] + max(work.output[i] - 1, 0) > pool:
            continue  # refused: it could never be held
        if not blind:
            for one in fleet:
                one.advance(arrival[i])
        if gate:
            inside = [j for j in inside if not 0 <= log.finish[j] <= arrival[i]]
            if gate(arrival[i], len(inside)):
                continue
            inside.append(i)
        number = choose(i)
        log.replica[i] = number
        fleet[number].advance(arrival[i])
        fleet[number].push(i)
    for one in fleet:
        one.advance(FOREVER)
    return log


def blank(work: Workload, engine: Engine, replicas: int) -> Log:
    """A log in which nothing has happened. ValueError for fewer than one replica."""
    if not 1 <= replicas <= 4096:
        raise ValueError(f"{replicas} replicas are outside 1…4096; use at least 1")
    never = array("q", [NEVER]) * len(work)
    return Log(
        work, engine, never[:], never[:], never[:], never[:], column([0]) * len(work),
        *(tuple(column(()) for _ in range(replicas)) for _ in range(5)),
    )  # fmt: skip


def crew(log: Log, replicas: int, detail: bool) -> list[Replica | Speculating]:
    """The replicas that write into a log."""
    if log.engine.accept:
        return [Speculating(log, number, detail) for number in range(replicas)]
    return [Replica(log, number, detail) for number in range(replicas)]
