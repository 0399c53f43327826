"""The most traffic that meets a service level: max-goodput search over the arrival rate.

Every rate replays the same draws (the same seed: gaps scale with the rate, lengths stay), so that the share of requests
that meet the limits falls with the rate but for ties; the search doubles until the share is missed and then halves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from servelab.sched.arrivals import Traffic, generate
from servelab.sched.engine import Engine
from servelab.sched.metrics import Limits, goodput
from servelab.sched.simulate import simulate


@dataclass(frozen=True, slots=True)
class Capacity:
    """`rate` requests/s met the level and `above` did not, nearest in the search; `share` of them at `rate`, 0…1.

    `rate` is 0 where not even the least met it, `above` infinite where the largest still did. `tried`: rate → share.
    """

    rate: float
    above: float
    share: float
    tried: dict[float, float]


def max_goodput(
    traffic: Traffic, engine: Engine, limits: Limits, share: float = 0.99, seed: int = 0, replicas: int = 1,
    low: float = 0.01, high: float = 1e4, precision: float = 0.01,
) -> Capacity:  # fmt: skip
    """The largest rate in low…high at which at least `share` of the requests meet every limit, to `precision`.

    ValueError for a share outside 0…1 or rates out of order.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share {share} is outside 0…1 (0 excluded); use 0.99 for 99 % of the requests")
    if not 0 < low < high:
        raise ValueError(f"rates from {low} to {high}: use 0 < low < high")
    tried: dict[float, float] = {}

    def met(rate: float) -> bool:
        work = generate(replace(traffic, rate=rate), seed)
        tried[rate] = goodput(simulate(work, engine, replicas), limits)
        return tried[rate] >= share

    return _bisect(met, low, high, precision, tried)


def _bisect(
    met: Callable[[float], bool], low: float, high: float, precision: float, tried: dict[float, float]
) -> Capacity:
    if not met(low):
        return Capacity(0.0, low, tried[low], tried)
    below, above = low, min(high, 2 * low)
    while met(above):
        if above == high:
            return Capacity(high, float("inf"), tried[high], tried)
        below, above = above, min(high, 2 * above)
    while above > below * (1 + precision):
        middle = (below * above) ** 0.5
        if met(middle):
            below = middle
        else:
            above = middle
    return Capacity(below, above, tried[below], tried)
