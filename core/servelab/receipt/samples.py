"""Summaries of raw samples: a measured metric is named `<sample>_<statistic>` and is recomputed from the samples at
load.

Percentiles interpolate linearly between order statistics, x[(n−1)·q] (Hyndman and Fan 1996, definition 7). Sums use
`math.fsum`, so that a summary does not depend on the order of the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from servelab.receipt.numbers import Number


def percentile(samples: Sequence[Number], q: float) -> float:
    """The q-quantile (0 ≤ q ≤ 1) of at least one sample, in the samples' unit."""
    if not samples or not 0 <= q <= 1:
        raise ValueError(f"a percentile needs at least one sample and 0 ≤ q ≤ 1, got {len(samples)} samples and q={q}")
    ordered = sorted(samples)
    at = (len(ordered) - 1) * q
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def mean(samples: Sequence[Number]) -> float:
    return math.fsum(samples) / len(samples)


def stdev(samples: Sequence[Number]) -> float:
    """Sample standard deviation, n−1 in the denominator; 0 for one sample."""
    centre = mean(samples)
    return math.sqrt(math.fsum((x - centre) ** 2 for x in samples) / max(1, len(samples) - 1))


STATISTICS: dict[str, Callable[[Sequence[Number]], Number]] = {
    "count": len,
    "min": min,
    "max": max,
    "mean": mean,
    "stdev": stdev,
    "median": lambda xs: percentile(xs, 0.5),
    "p10": lambda xs: percentile(xs, 0.10),
    "p25": lambda xs: percentile(xs, 0.25),
    "p75": lambda xs: percentile(xs, 0.75),
    "p90": lambda xs: percentile(xs, 0.90),
    "p95": lambda xs: percentile(xs, 0.95),
    "p99": lambda xs: percentile(xs, 0.99),
}


def split(metric: str) -> tuple[str, str]:
    """("ttft_ms", "p95") from "ttft_ms_p95". ValueError when the name ends in no known statistic."""
    sample, _, statistic = metric.rpartition("_")
    if not sample or statistic not in STATISTICS:
        raise ValueError(
            f"measured metric {metric!r} is not <sample>_<statistic>; end it in one of {', '.join(STATISTICS)}"
        )
    return sample, statistic
