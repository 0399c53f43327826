"""Small experiments whose outcome is known beforehand: admission, routing, chunk size. Receipts and tests run them.

`gatekeeper` sends the same Poisson arrivals through a fixed window and a token bucket to one server. `routed` counts
what prefix caches save behind each router. `chunk_sweep` serves long prompts beside decodes with token chunks from
small to large: a prompt of L tokens in chunks of C takes (L/C)·a + b·L, and a chunk holds every decode up by a + b·C;
their sum has its minimum at C = √(a·L/b).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from servelab.sched.admission import ADMISSIONS, Limit
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.gaps import Gaps, progressions
from servelab.sched.metrics import MS, latencies, stat
from servelab.sched.request import PS, Workload, column
from servelab.sched.routing import ROUTERS
from servelab.sched.simulate import simulate


@dataclass(frozen=True, slots=True)
class Flood:
    """`requests` Poisson arrivals at `rate`/s to a server that takes `service` s for each, behind `limit`."""

    requests: int = 300
    rate: float = 20.0
    service: Fraction = Fraction(22, 100)
    limit: Limit = Limit(Fraction(22, 5), 20, 88, Fraction(20))


@dataclass(frozen=True, slots=True)
class Passed:
    """By seed: how many requests a gate admitted, and the 95th percentile of their wait and service, s."""

    admitted: tuple[int, ...]
    p95: tuple[float, ...]


def gatekeeper(flood: Flood, names: Sequence[str], seeds: Sequence[int]) -> dict[str, Passed]:
    """Every gate on the same arrivals, seed by seed."""
    rows: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    service = round(flood.service * PS)
    for seed in seeds:
        rng, now, arrivals = Random(seed), 0.0, []
        for _ in range(flood.requests):
            now += rng.expovariate(flood.rate)
            arrivals.append(round(now * 10**6) * (PS // 10**6))  # whole µs: no last bit of a logarithm is seen
        for name in names:
            gate, free, spent = ADMISSIONS[name](flood.limit), 0, []
            for t in arrivals:
                if not gate(t, 0):
                    free = max(free, t) + service
                    spent.append((free - t) / PS)
            rows[name].append((len(spent), stat(spent).percentiles["p95"]))
    return {name: Passed(*(tuple(column) for column in zip(*found, strict=True))) for name, found in rows.items()}


@dataclass(frozen=True, slots=True)
class Prefixes:
    """`counts[p]` requests share prefix p, `shared` blocks of their `blocks`; each comes when the last is done."""

    counts: tuple[int, ...]
    shared: int
    blocks: int
    block: int = 16

    def workload(self, order: Sequence[int]) -> Workload:
        """Requests in that order of prefixes; every private block has a name of its own."""
        n, private = len(order), self.blocks - self.shared
        hashes = tuple(
            (*(p * self.blocks + k for k in range(self.shared)), *(-1 - i * private - k for k in range(private)))
            for i, p in enumerate(order)
        )
        prompt = column([self.blocks * self.block] * n)
        return Workload(column(i * PS for i in range(n)), prompt, column([1] * n), hashes, self.block)


def routed(prefixes: Prefixes, router: str, replicas: int, seed: int | None = None) -> float:
    """Share of prompt tokens found in caches without eviction; prefix after prefix, or shuffled by a seed."""
    order = [p for p, count in enumerate(prefixes.counts) for _ in range(count)]
    if seed is not None:
        Random(seed).shuffle(order)
    work = prefixes.workload(order)
    cost = Cost(graph=MS, mixed=MS, eager=MS)
    log = simulate(work, Engine(cost, budget=2**20, block_size=prefixes.block, prefix=True), replicas, ROUTERS[router])
    return sum(log.cached) / sum(work.prompt)


@dataclass(frozen=True, slots=True)
class Chunked:
    """With one chunk size: 95th percentile of TTFT over the prompts, and the longest gap of the decodes beside, ms."""

    ttft_p95: float
    stall: float

    @property
    def both(self) -> float:
        """What has its minimum at C = √(a·L/b)."""
        return self.ttft_p95 + self.stall


def chunk_sweep(
    chunks: Sequence[int], prompts: int, length: int, decodes: int, overhead: int, token: int
) -> dict[int, Chunked]:
    """`prompts` of `length` tokens, one a second, beside `decodes` long answers, in chunks of each size; a step costs
    `overhead` + `token`·tokens, ps.
    """
    out = {}
    for chunk in chunks:
        cost = Cost(host=overhead, token=token)
        arrival = column([0] * decodes + [(1 + i) * PS for i in range(prompts)])
        work = Workload(
            arrival, column([1] * decodes + [length] * prompts), column([100_000] * decodes + [1] * prompts)
        )
        log = simulate(work, Engine(cost, budget=chunk + decodes, seqs=decodes + 8))
        waits = [ms for ms, n in zip(latencies(log)["ttft"], work.prompt, strict=True) if n == length]
        gaps = Gaps(progressions(log))
        out[chunk] = Chunked(stat(waits).percentiles["p95"], gaps.at(gaps.n)[0] / MS)
    return out
