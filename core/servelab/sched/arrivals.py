"""Generated traffic: when requests come and how long they are, from a seed.

Arrivals: `poisson` (memoryless), `gamma` (the same rate with interarrival times of coefficient of variation `cv`: > 1
comes in bursts), `constant` (a metronome), `burst` (all at time 0). Lengths: `fixed`, `uniform`, `lognormal` with a
given mean, or a quantile table of a real trace, read by inverse transform with linear interpolation. Three independent
streams of numbers, so that changing the rate leaves every length as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from servelab.sched.request import MAX_ARRIVAL, MAX_LENGTH, PS, Workload, column

MAX_REQUESTS = 10**7


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of token counts, clipped to low…high.

    `kind` "fixed" (`mean`), "uniform" (low…high), "lognormal" (`mean` before clipping, `sigma` of the logarithm) or
    "table" (`table`: equally spaced quantiles from minimum to maximum).
    """

    kind: str = "fixed"
    mean: float = 256
    sigma: float = 0.0
    low: int = 1
    high: int = MAX_LENGTH
    table: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in _DRAW:
            raise ValueError(f"lengths {self.kind!r} are unknown; use one of {', '.join(_DRAW)}")
        if not 0 <= self.low <= self.high <= MAX_LENGTH:
            raise ValueError(f"lengths from {self.low} to {self.high}: use 0 ≤ low ≤ high ≤ {MAX_LENGTH}")
        if not 0 < self.mean <= MAX_LENGTH or not 0 <= self.sigma <= 10:
            raise ValueError(f"mean {self.mean} and sigma {self.sigma}: use a mean above 0 and a sigma of 0 to 10")
        if self.kind == "table" and (len(self.table) < 2 or list(self.table) != sorted(self.table)):
            raise ValueError(f"a table of {len(self.table)} quantiles: give at least 2, rising")

    def draw(self, rng: Random) -> int:
        """One token count."""
        return min(self.high, max(self.low, _DRAW[self.kind](self, rng)))


def _lognormal(lengths: Lengths, rng: Random) -> int:
    return round(rng.lognormvariate(math.log(lengths.mean) - lengths.sigma**2 / 2, lengths.sigma))


def _table(lengths: Lengths, rng: Random) -> int:
    at = rng.random() * (len(lengths.table) - 1)
    i = int(at)
    return round(lengths.table[i] + (at - i) * (lengths.table[i + 1] - lengths.table[i]))


_DRAW: dict[str, Callable[[Lengths, Random], int]] = {
    "fixed": lambda lengths, rng: round(lengths.mean),
    "uniform": lambda lengths, rng: rng.randint(lengths.low, lengths.high),
    "lognormal": _lognormal,
    "table": _table,
}


def _poisson(rate: float, cv: float, rng: Random) -> float:
    return rng.expovariate(rate)


def _gamma(rate: float, cv: float, rng: Random) -> float:
    return rng.gammavariate(cv**-2, cv**2 / rate)


GAPS: dict[str, Callable[[float, float, Random], float]] = {
    "poisson": _poisson,
    "gamma": _gamma,
    "constant": lambda rate, cv, rng: 1 / rate,
    "burst": lambda rate, cv, rng: 0.0,
}
"""Arrival processes by name: (rate, cv, rng) → seconds until the next request."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """`requests` requests at `rate` per second."""

    rate: float
    requests: int
    prompt: Lengths
    output: Lengths
    arrivals: str = "poisson"
    cv: float = 1.0

    def __post_init__(self) -> None:
        if self.arrivals not in GAPS:
            raise ValueError(f"arrivals {self.arrivals!r} are unknown; use one of {', '.join(GAPS)}")
        if not 1e-6 <= self.rate <= 1e9:
            raise ValueError(f"rate {self.rate} is outside 1e-6…1e9 requests/s; use a rate in it, or arrivals 'burst'")
        if not 0 <= self.requests <= MAX_REQUESTS:
            raise ValueError(f"{self.requests} requests are outside 0…{MAX_REQUESTS:,}; use fewer")
        if not 0.05 <= self.cv <= 20:
            raise ValueError(f"cv {self.cv} is outside 0.05…20; 1 is Poisson, more comes in bursts")


def generate(traffic: Traffic, seed: int) -> Workload:
    """The workload of a seed; the same in every Python from 3.11 on. ValueError when it lasts longer than 53 days."""
    gaps, prompts, outputs = (Random(f"{seed}/{stream}") for stream in ("arrivals", "prompts", "outputs"))
    gap, now = GAPS[traffic.arrivals], 0.0
    arrival = []
    for _ in range(traffic.requests):
        now += gap(traffic.rate, traffic.cv, gaps)
        arrival.append(round(now * PS))
    if arrival and arrival[-1] > MAX_ARRIVAL:
        last = f"the last of {traffic.requests:,} requests at {traffic.rate:g}/s comes after {now / 86400:,.0f} days"
        raise ValueError(f"{last}, and a run may last {MAX_ARRIVAL / PS / 86400:,.0f}; use a higher rate or fewer")
    prompt = column(max(1, traffic.prompt.draw(prompts)) for _ in arrival)
    return Workload(column(arrival), prompt, column(traffic.output.draw(outputs) for _ in arrival))
