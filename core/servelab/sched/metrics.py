"""What a run was like, in the field's definitions: TTFT, TPOT, ITL, E2E, throughput, goodput.

TTFT: arrival to first token. TPOT: (finish − first) / (output − 1), for outputs of at least 2. ITL: every gap between
two tokens of one request. E2E: arrival to finish. Percentiles interpolate linearly between order statistics, as numpy's
and so vLLM's benchmark do; each carries n and a 95 % interval between two order statistics (binomial, free of any shape
assumption), or none where n is too small to bound it. Goodput counts the requests that met every limit, over all that
arrived: refused and unfinished ones are misses.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

from servelab.sched.gaps import Gaps, progressions
from servelab.sched.request import PS
from servelab.sched.simulate import Log

MS = PS // 1000
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Stat:
    """n values in ms: mean, percentiles by name ("p50"), and 95 % intervals of those that n bounds."""

    n: int
    mean: float
    percentiles: dict[str, float]
    intervals: dict[str, tuple[float, float] | None]


    def plain(self) -> dict[str, Any]:
        """For JSON: {"n", "mean_ms", "p50_ms", …, "p99_ci95_ms"}; NaN becomes None."""
        out: dict[str, Any] = {"n": self.n, "mean_ms": None if math.isnan(self.mean) else self.mean}
        out |= {f"{name}_ms": value for name, value in self.percentiles.items()}
        return out | {f"{name}_ci95_ms": pair and list(pair) for name, pair in self.intervals.items()}


@dataclass(frozen=True, slots=True)
class Limits:
    """Service level: the most that TTFT, TPOT and E2E may take, ms; infinite where nothing is asked."""

    ttft: float = math.inf
    tpot: float = math.inf
    e2e: float = math.inf


SLOS = {
    "8B, server": Limits(2000, 100),
    "8B, interactive": Limits(500, 30),
    "70B, server": Limits(2000, 200),
    "70B, interactive": Limits(450, 40),
}
"""MLPerf Inference v5.1's limits on the 99th percentile, used here per request."""


@cache
def ranks(n: int, p: float, level: float = 0.95) -> tuple[int, int] | None:
    """Order statistics (from 1) between which the p-quantile (0…1) lies with probability ≥ `level`; None: n too small.

    The count of values below the quantile is binomial(n, p); beyond n·p·(1 − p) = 1,000 it is taken as normal.
    """
    tail = (1 - level) / 2
    if p**n > tail or (1 - p) ** n > tail:
        return None
    spread = math.sqrt(n * p * (1 - p))
    if spread * spread > 1000:
        half = NormalDist().inv_cdf(1 - tail) * spread
        return max(1, math.floor(n * p - half)), min(n, math.ceil(n * p + half) + 1)
    low = -1
    passed = 0.0
    for k in range(max(0, int(n * p - 12 * spread) - 20), n + 1):  # what is left out below is under 1e-20
        ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        passed += math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))
        if low < 0 and passed > tail:
            low = k
        if passed >= 1 - tail:
            return max(low, 1), min(k + 1, n)
    return max(low, 1), n


def stat(values: Sequence[float]) -> Stat:
    """Of values in ms."""
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        return Stat(0, math.nan, {}, {})
    points, intervals = {}, {}
    for p in PERCENTILES:
        at = (n - 1) * p / 100
        i = int(at)
        points[f"p{p}"] = ordered[i] + (ordered[min(i + 1, n - 1)] - ordered[i]) * (at - i)
        pair = ranks(n, p / 100)
        intervals[f"p{p}"] = pair and (ordered[pair[0] - 1], ordered[pair[1] - 1])
    return Stat(n, math.fsum(ordered) / n, points, intervals)


def itl(log: Log) -> Stat:
    """Inter-token latency over all tokens of all requests."""
    gaps = Gaps(progressions(log))
    n = gaps.n
    if not n:
        return Stat(0, math.nan, {}, {})
    points, intervals = {}, {}
    for p in PERCENTILES:
        i, rest = divmod((n - 1) * p, 100)
        pair = ranks(n, p / 100)
        wanted = sorted({i + 1, min(i + 2, n), *(pair or ())})
        at = dict(zip(wanted, gaps.at(*wanted), strict=True))
        points[f"p{p}"] = (at[i + 1] + (at[min(i + 2, n)] - at[i + 1]) * rest / 100) / MS
        intervals[f"p{p}"] = pair and (at[pair[0]] / MS, at[pair[1]] / MS)
    return Stat(n, gaps.total / n / MS, points, intervals)


def latencies(log: Log) -> dict[str, array[float]]:
    """TTFT, TPOT and E2E of every request that has them, ms."""
    out = {name: array("d") for name in ("ttft", "tpot", "e2e")}
    columns = log.work.arrival, log.work.output, log.first, log.finish
    for arrival, output, first, finish in zip(*columns, strict=True):
        if first >= 0:
            out["ttft"].append((first - arrival) / MS)
        if finish >= 0:
            out["e2e"].append((finish - arrival) / MS)
            if output > 1:
                out["tpot"].append((finish - first) / (output - 1) / MS)
    return out


def goodput(log: Log, limits: Limits) -> float:
    """Share of the requests that arrived which met every limit, 0…1."""
    met = 0
    columns = log.work.arrival, log.work.output, log.first, log.finish
    for arrival, output, first, finish in zip(*columns, strict=True):
        if finish < 0:
            continue
        spoke = first if first >= 0 else finish
        tpot = (finish - spoke) / max(output - 1, 1) / MS
        met += (
            (spoke - arrival) / MS <= limits.ttft and tpot <= limits.tpot and (finish - arrival) / MS <= limits.e2e
        )
    return met / len(log.work) if len(log.work) else 1.0


def summary(log: Log, limits: Limits | None = None) -> dict[str, Any]:
    """All metrics of a run, for people and for JSON."""
    work, done = log.work, [i for i, finish in enumerate(log.finish) if finish >= 0]
    span = (max(log.finish[i] for i in done) - work.arrival[0]) / PS if done else 0.0
    said = sum(work.output[i] for i in done)
    prompts = sum(work.prompt[i] for i in done)
    iterations = sum(sum(steps[1::7]) for steps in log.steps)
    out: dict[str, Any] = {
        "requests": len(work), "finished": len(done), "refused": sum(r < 0 for r in log.replica),
        "preemptions": sum(len(rows) // 3 for rows in log.preempted), "iterations": iterations,
        "makespan_s": span, "requests_per_s": len(done) / span if span else 0.0,
        "output_tokens_per_s": said / span if span else 0.0,
        "total_tokens_per_s": (said + prompts) / span if span else 0.0,
        "tokens_per_iteration": (said + prompts - sum(log.cached)) / iterations if iterations else 0.0,
        "cached_percent": 100 * sum(log.cached) / prompts if prompts else 0.0,
    }  # fmt: skip
    out |= {name: stat(values).plain() for name, values in latencies(log).items()}
    out["itl"] = itl(log).plain()
    if limits:
        share = goodput(log, limits)
        out["goodput_percent"], out["goodput_per_s"] = 100 * share, share * len(work) / span if span else 0.0
    return out
