"""Gates against exact rationals, against what they promise, and in front of an engine."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.sched.admission import ADMISSIONS, Limit, concurrency, fixed_window, gcra, sliding_window, token_bucket
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.experiments import Flood, gatekeeper
from servelab.sched.metrics import Limits, summary
from servelab.sched.request import PS, Workload, column
from servelab.sched.simulate import simulate

LIMITS = st.builds(
    Limit, rate=st.fractions(Fraction(1, 10), 50, max_denominator=30), burst=st.integers(1, 6),
    count=st.integers(1, 6), window=st.fractions(Fraction(1, 10), 5, max_denominator=20),
)  # fmt: skip
CLOCK = st.lists(st.integers(-PS // 5, PS), min_size=1, max_size=60)
"""Steps of a clock that now and then goes back."""


def moments(steps: list[int]) -> list[int]:
    now, out = 0, []
    for step in steps:
        now = max(0, now + step)
        out.append(now)
    return out


def exact_bucket(limit: Limit, times: list[int]) -> list[bool]:
    """In rationals, as the definition reads."""
    level, last, out = Fraction(limit.burst), 0, []
    for t in times:
        t = max(t, last)
        level, last = min(Fraction(limit.burst), level + limit.rate * Fraction(t - last, PS)), t
        out.append(level >= 1)
        level -= level >= 1
    return out


@settings(max_examples=300)
@given(LIMITS, CLOCK)
def test_bucket_and_gcra_decide_as_rationals_do(limit: Limit, steps: list[int]) -> None:
    times = moments(steps)
    bucket, rate = token_bucket(limit), gcra(limit)
    expected = exact_bucket(limit, times)
    assert [not bucket(t, 0) for t in times] == expected
    assert [not rate(t, 0) for t in times] == expected


@settings(max_examples=200)
@given(st.sampled_from(["token_bucket", "gcra", "fixed_window", "sliding_window"]), LIMITS, CLOCK)
def test_retry_after_is_the_least_time_that_helps(name: str, limit: Limit, steps: list[int]) -> None:
    """A twin that asks 1 ps earlier is refused, one that asks then gets in."""
    times = moments(steps)
    for k, t in enumerate(times):
        gates = [ADMISSIONS[name](limit) for _ in range(3)]
        waits = [[gate(early, 0) for early in times[: k + 1]][-1] for gate in gates]
        if waits[0]:
            assert gates[1](t + waits[0], 0) == 0
            assert waits[0] == 1 or gates[2](t + waits[0] - 1, 0) == 1


@settings(max_examples=200)
@given(LIMITS, CLOCK, st.integers(1, 3 * PS))
def test_no_window_sees_more_than_is_promised(limit: Limit, steps: list[int], width: int) -> None:
    times = sorted(moments(steps))
    gate = token_bucket(limit)
    entered = [t for t in times if not gate(t, 0)]
    most = limit.burst + limit.rate * Fraction(width, PS) // 1
    assert all(sum(t <= other <= t + width for other in entered) <= most for t in entered)
    slide, span = sliding_window(limit), round(limit.window * PS)
    entered = [t for t in times if not slide(t, 0)]
    assert all(sum(t <= other < t + span for other in entered) <= limit.count for t in entered)
    fixed = fixed_window(limit)
    entered = [t for t in times if not fixed(t, 0)]
    assert all(sum(t // span == other // span for other in entered) <= limit.count for t in entered)


def test_the_flood_is_what_the_two_gates_make_of_it() -> None:
    """300 arrivals come within one window of 20 s, so exactly its 88 enter; the bucket's mean is about 20 + 4.4·15."""
    found = gatekeeper(Flood(), ("fixed_window", "token_bucket"), range(400))
    window, bucket = found["fixed_window"], found["token_bucket"]
    assert set(window.admitted) == {88}
    assert sorted(bucket.admitted)[200] == 85
    assert sorted(bucket.p95)[200] == pytest.approx(4.3, abs=0.1)
    assert sorted(window.p95)[200] == pytest.approx(14.3, abs=0.2)


def test_a_gate_refuses_before_the_engine_and_refusals_are_misses() -> None:
    work = Workload(column([0] * 10), column([10] * 10), column([4] * 10))
    engine = Engine(Cost(graph=1, mixed=1, eager=1))
    log = simulate(work, engine, gate=token_bucket(Limit(burst=3)))
    found = summary(log, Limits())
    assert (found["finished"], found["refused"], found["goodput_percent"]) == (3, 7, 30)
    log = simulate(work, engine, gate=concurrency(Limit(count=4)))
    assert summary(log)["finished"] == 4


def test_concurrency_lets_in_who_comes_after_one_has_left() -> None:
    work = Workload(column([0, 1, 200]), column([10] * 3), column([1] * 3))
    log = simulate(work, Engine(Cost(graph=100, mixed=100, eager=100)), gate=concurrency(Limit(count=1)))
    assert list(log.replica) == [0, -1, 0]


@pytest.mark.parametrize("change", [{"rate": Fraction(0)}, {"burst": 0}, {"count": 0}, {"window": Fraction(10**7)}])
def test_a_limit_that_lets_nobody_in_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        Limit(**change)  # type: ignore[arg-type]
