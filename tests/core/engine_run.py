"""A run file as a real engine would leave it, made by the step-by-step reference with a known cost."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

from servelab.sched.arrivals import Lengths, Traffic, generate
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.reference import Reference, Sequence
from servelab.sched.request import PS, Workload, column

US = 10**6
TRUTH = Cost(
    host=400 * US, seq=10 * US, new=120 * US, fixed=600 * US, weights=4_000 * US, token=20 * US, tile=16,
    context=12_000, work=300, logit=5 * US, graph=1_500 * US, mixed=4_000 * US, eager=9_000 * US,
)  # fmt: skip


class Recorder(Reference):
    """Keeps rows as generate/engine_steps.py does."""

    def __init__(self, work: Workload, engine: Engine, clocked: bool = False, held: bool = False) -> None:
        super().__init__(work, engine)
        self.clocked, self.held = clocked, held
        self.issued = self.over = 0  # when the step before was issued, and when the one before that had ended
        self.rows: list[list[float]] = []
        self.ends: list[list[float]] = []

    def execute(self, decodes: list[tuple[Sequence, int]], chunks: list[tuple[Sequence, int]], admitted: int) -> None:
        tokens, seen = sum(n for _, n in chunks), sum(one.done + n for one, n in chunks)
        context = sum(one.done + 1 for one, _ in decodes)
        self.rows.append([self.now / PS, len(chunks), tokens, len(decodes), context + seen])
        start, woken, free = self.now, self.woken, self.now if self.woken else max(self.issued, self.over)
        seen_till = self.seen
        work = sum(n * one.done + n * (n + 1) // 2 for one, n in chunks)
        sampled = len(decodes) + sum(one.done + n == one.goal for one, n in chunks)
        super().execute(decodes, chunks, admitted)
        self.ends.append([self.now / PS, len(decodes)])
        if not self.clocked:
            return
        cost = self.engine.cost
        cpu, launch = cost.on_host(len(decodes), tokens, len(chunks), admitted)
        line = cost.line(max(1, len(decodes)))
        gpu = line.base + line.slope * context
        if chunks:
            gpu, _ = cost.step(len(decodes), context, tokens, work, len(chunks), admitted, sampled, PS)
        forward = free + cpu
        self.issued, self.over = forward + launch, start
        marks = [forward, forward + launch, max(start, forward), self.now]
        if self.held:
            marks = [start, start, start, start + gpu]
        self.rows[-1] += [
            work, context, seen_till / PS, admitted, sampled, start / PS if woken else -1, *(t / PS for t in marks)
        ]  # fmt: skip


def recorded(
    work: Workload, cost: Cost, budget: int, clocked: bool = False, held: bool = False, blocks: int = 100_000
) -> dict[str, Any]:
    """One recording: steps, ends, requests."""
    engine = Recorder(work, Engine(cost, "chunked", budget, 256, blocks - 1), clocked, held)
    times: dict[int, list[float]] = {}
    for t, kind, i, _ in engine.run():
        if kind == "token":
            times.setdefault(i, []).append(t / PS)
    requests = [
        {"arrival": t / PS, "n_in": n, "n_out": out, "first": times[i][0], "last": times[i][-1], "got": out}
        for i, (t, n, out) in enumerate(zip(work.arrival, work.prompt, work.output, strict=True))
    ]
    return {"requests": requests, "steps": engine.rows, "ends": engine.ends}


def traffic(rate: float, requests: int, seed: int, mean: int = 300) -> Workload:
    prompts, outputs = Lengths("lognormal", mean, 0.8, 8, 4000), Lengths("lognormal", 60, 0.6, 4, 300)
    return generate(Traffic(rate, requests, prompts, outputs), seed)


def run_file(cost: Cost = TRUTH) -> bytes:
    """Sweeps of decode batches, one in-sample recording, two held out."""
    sweeps = []
    for c in (1, 8, 32, 128):
        together = Workload(column([0] * c), column([128] * c), column([40] * c))
        sweeps.append({"c": c, "n_in": 128, "n_out": 40, **recorded(together, cost, 8192)})
    online = [
        {"name": "fit-a", "rate": 20, "budget": 8192, **recorded(traffic(20, 300, 1), cost, 8192)},
        {"name": "held-short", "rate": 30, "budget": 2048, **recorded(traffic(30, 300, 2), cost, 2048)},
        {"name": "held-long", "rate": 8, "budget": 512, **recorded(traffic(8, 120, 3, 1500), cost, 512)},
    ]
    run = {
        "model": "made up", "gpu": "none", "vllm": "0", "budget": 8192, "seqs": 256, "kv_blocks": 100_000,
        "async": False, "offline": sweeps, "online": online,
    }  # fmt: skip
    return gzip.compress(json.dumps(run).encode())


OVERLAPPING = replace(
    TRUTH, overlap=True, pieces=200 * US, graph=400 * US, mixed=5_000 * US, logit=2 * US, graph_tokens=8192
)


def clocked_file(cost: Cost = OVERLAPPING, held: bool = True) -> bytes:
    """An engine that overlaps and tells when its parts began and ended; the last recording has a small pool."""
    online = [
        {"name": "fit-a", "rate": 60, "budget": 8192, **recorded(traffic(60, 400, 1), cost, 8192, True)},
        {"name": "fit-b", "rate": 15, "budget": 512, **recorded(traffic(15, 200, 2), cost, 512, True)},
        {"name": "held-out", "rate": 40, "budget": 2048, **recorded(traffic(40, 300, 3), cost, 2048, True)},
        {"name": "tight", "rate": 60, "budget": 2048, "kv_blocks": 400,
         **recorded(traffic(60, 200, 4), cost, 2048, True, blocks=400)},
    ]  # fmt: skip
    alone = [{"name": "alone", "rate": 9, "budget": 2048, **recorded(traffic(9, 150, 5), cost, 2048, True, True)}]
    run = {
        "model": "made up", "gpu": "none", "vllm": "0", "budget": 8192, "seqs": 256, "kv_blocks": 100_000,
        "async": True, "graph_tokens": 8192, "online": online, "held": alone if held else [],
    }  # fmt: skip
    return gzip.compress(json.dumps(run).encode())
