"""Metrics against token times of the reference, the standard library's quantiles and the binomial law."""

from __future__ import annotations

import itertools
import json
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sched_simulate import engines, workloads

from servelab.sched import gaps as few
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.gaps import Gaps, progressions
from servelab.sched.metrics import MS, Limits, itl, ranks, stat, summary
from servelab.sched.reference import Reference
from servelab.sched.request import Workload, column
from servelab.sched.simulate import simulate


@settings(max_examples=800, deadline=None)
@given(workloads(), engines(), st.sampled_from([0, 3, few.FEW]))
def test_every_gap_is_there_as_often_as_it_happened(work: Workload, engine: Engine, listed: int) -> None:
    """Token by token, from the reference."""
    times: dict[int, list[int]] = {}
    for t, kind, i, _ in Reference(work, engine).run():
        if kind == "token":
            times.setdefault(i, []).append(t)
    expected = sorted(b - a for row in times.values() for a, b in itertools.pairwise(row))
    pieces = list(progressions(simulate(work, engine)))
    got = sorted(low + rise * k for low, rise, times, weight in pieces for k in range(times) for _ in range(weight))
    assert got == expected
    if got:
        gaps = Gaps(pieces)
        assert [gaps.at(k + 1)[0] for k in range(len(got))] == got and gaps.total == sum(got)
        with pytest.MonkeyPatch.context() as patch:  # what is too much to list is halved on
            patch.setattr(few, "FEW", listed)
            assert gaps.at(*range(1, len(got) + 1)) == got
    if len(got) > 1:
        found = itl(simulate(work, engine))
        for p in (50, 90, 95, 99):
            assert found.percentiles[f"p{p}"] == pytest.approx(quantile(got, p) / MS, rel=1e-12)


def quantile(values: list[float] | list[int], p: int) -> float:
    """Linear between order statistics, the definition that numpy.percentile has by default."""
    return statistics.quantiles(values, n=100, method="inclusive")[p - 1]


def test_percentiles_interpolate_between_order_statistics() -> None:
    rng = random.Random(1)
    values = [rng.expovariate(1) for _ in range(1234)]
    found = stat(values)
    assert found.n == 1234 and found.mean == pytest.approx(statistics.fmean(values))
    for name, value in found.percentiles.items():
        assert value == pytest.approx(quantile(values, int(name[1:])))
        low, high = found.intervals[name] or (0, 0)
        assert low <= value <= high


def test_the_interval_of_a_percentile_covers_it_as_often_as_it_says() -> None:
    """Uniform values, whose quantiles are known; at least 95 % of 2,000 draws, less three standard errors."""
    rng = random.Random(2)
    for n, p in ((40, 0.5), (500, 0.9), (2000, 0.99)):
        low, high = ranks(n, p) or (0, 0)
        covered = 0
        for _ in range(2000):
            ordered = sorted(rng.random() for _ in range(n))
            covered += ordered[low - 1] <= p <= ordered[high - 1]
        assert covered / 2000 >= 0.95 - 3 * (0.95 * 0.05 / 2000) ** 0.5


def test_too_few_values_bound_no_percentile() -> None:
    """An equal-tailed 95 % interval of the 99th percentile needs 0.99^n ≤ 0.025: 368 values."""
    assert ranks(367, 0.99) is None and ranks(368, 0.99) is not None
    assert stat([1.0, 2.0]).intervals["p50"] is None


def test_goodput_counts_refused_requests_as_misses() -> None:
    work = Workload(column([0, 0]), column([10, 1000]), column([4, 4]))
    log = simulate(work, Engine(Cost(graph=MS, mixed=MS, eager=MS), blocks=4))
    found = summary(log, Limits(ttft=5, tpot=5))
    assert (found["requests"], found["finished"], found["refused"], found["goodput_percent"]) == (2, 1, 1, 50)
    assert json.loads(json.dumps(found)) == found
