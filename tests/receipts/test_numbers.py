"""Sameness to 12 digits, and summaries against the standard library's own."""

from __future__ import annotations

import random
import statistics

import pytest

from servelab.receipt.numbers import real, same
from servelab.receipt.samples import STATISTICS, percentile, split


@pytest.mark.parametrize(
    ("committed", "recomputed", "equal"),
    [
        (204, 204, True),
        (204, 205, False),
        (204.0000000000001, 204, False),
        (0.543772037851109, 0.5437720378511091, True),
        (0.543772037851, 0.543772037852, False),
        (1.00000000000, 1.00000000000449, True),
        (1.00000000000, 1.00000000000551, False),
        (9.99999999999, 9.99999999998, False),
        (1e-30, 1.000000000001e-30, True),
        (0, 0.0, True),
        (0, 1e-300, False),
        (-2.5, 2.5, False),
    ],
)
def test_same(committed: float, recomputed: float, equal: bool) -> None:
    assert same(committed, recomputed) is equal


def test_real_states_fifteen_digits() -> None:
    assert real(1 / 3) == 0.333333333333333
    with pytest.raises(ValueError, match="finite"):
        real(float("nan"))


def test_summaries_agree_with_the_standard_library() -> None:
    rng = random.Random(4)
    for n in (2, 3, 10, 101):
        xs = [rng.lognormvariate(3, 1) for _ in range(n)]
        cuts = statistics.quantiles(xs, n=100, method="inclusive")
        for name in ("p10", "p25", "p75", "p90", "p95", "p99"):
            assert STATISTICS[name](xs) == pytest.approx(cuts[int(name[1:]) - 1], rel=1e-12)
        assert STATISTICS["median"](xs) == pytest.approx(statistics.median(xs), rel=1e-12)
        assert STATISTICS["stdev"](xs) == pytest.approx(statistics.stdev(xs), rel=1e-12)
        assert STATISTICS["mean"](xs) == pytest.approx(statistics.fmean(xs), rel=1e-12)


def test_edges() -> None:
    assert percentile([7], 0.99) == 7
    assert STATISTICS["stdev"]([7]) == 0
    with pytest.raises(ValueError, match="at least one sample"):
        percentile([], 0.5)
    with pytest.raises(ValueError, match=r"'speed' is not <sample>_<statistic>"):
        split("speed")
