"""Speculation: the reference writes the same log as the fast simulator, and steps yield what the formula says."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sched_simulate import engines, events, rows, workloads

from servelab.sched import simulate as simulation
from servelab.sched.arrivals import Lengths, Traffic, generate
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.gaps import Gaps, progressions
from servelab.sched.metrics import summary
from servelab.sched.request import Workload, column
from servelab.sched.simulate import Log, simulate
from servelab.sched.speculate import Speculating, yielded


def plain(work: Workload, engine: Engine) -> Log:
    """The workload through the step-by-step replica."""
    real, simulation.Replica = simulation.Replica, Speculating  # type: ignore[misc, assignment]
    try:
        return simulate(work, engine, detail=True)
    finally:
        simulation.Replica = real  # type: ignore[misc]


def gaps(log: Log) -> list[int]:
    found = Gaps(progressions(log))
    return found.at(*range(1, found.n + 1)) if found.n else []


@settings(max_examples=400, deadline=None)
@given(workloads(), engines())
def test_without_guesses_it_writes_the_log_of_the_fast_simulator(work: Workload, engine: Engine) -> None:
    fast, slow = simulate(work, engine, detail=True), plain(work, engine)
    assert (fast.replica, fast.first, fast.finish, fast.admitted) == (
        slow.replica, slow.first, slow.finish, slow.admitted,
    )  # fmt: skip
    assert fast.preempted == slow.preempted and fast.chunks == slow.chunks
    assert events(fast) == events(slow)
    told = replace(slow, engine=replace(engine, accept=(0.0,), budget=2 * engine.budget))  # every gap from its row
    assert gaps(fast) == gaps(told)


@settings(max_examples=400, deadline=None)
@given(workloads(), engines(), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_every_answer_comes_whole_and_memory_comes_back(work: Workload, engine: Engine, accept: list[float]) -> None:
    budget = max(engine.budget, engine.seqs * (1 + len(accept)))
    log = simulate(work, replace(engine, accept=tuple(accept), budget=budget), detail=True)
    for i, replica in enumerate(log.replica):
        if replica >= 0:
            assert work.arrival[i] <= log.admitted[i] < log.finish[i]
            assert log.first[i] <= log.finish[i]
    decodes = sum(row[1] * row[2] for row in rows(log.steps[0], 7))
    said = sum(max(work.output[i] - 1, 0) for i, replica in enumerate(log.replica) if replica >= 0)
    assert decodes <= said  # a step brings each decode at least one token
    assert all(held <= engine.blocks for held in log.held[0])


@pytest.mark.parametrize("accept", [(0.8,) * 4, (0.9, 0.7, 0.5), (0.0, 1.0), (1.0,) * 3])
def test_a_step_yields_what_the_formula_says(accept: tuple[float, ...]) -> None:
    """Leviathan et al.: 1 + p₁ + p₁p₂ + …; 400 answers of 3,001 tokens."""
    n = 400
    work = Workload(column([0] * n), column([16] * n), column([3001] * n))
    log = simulate(work, Engine(Cost(), seqs=256, accept=accept))
    steps = log.steps[0]
    decodes = sum(count * of for count, of in zip(steps[1::7], steps[2::7], strict=True))
    assert n * 3000 / decodes == pytest.approx(yielded(accept), rel=0.005)
    alpha = accept[0]
    if len(set(accept)) == 1 and alpha < 1:
        assert yielded(accept) == pytest.approx((1 - alpha ** (len(accept) + 1)) / (1 - alpha))


def test_guesses_cost_what_they_cost() -> None:
    """Tokens per step are not speed: with a draft of 0.63 of a step, eight guesses of 0.88 make a slowdown of 0.94×."""
    step = 10_000
    traffic = Traffic(1, 64, Lengths("fixed", 1), Lengths("fixed", 2000), "burst")
    work = generate(traffic, 0)
    cost = Cost(weights=step, draft=round(0.63 * step))
    alone = simulate(work, Engine(cost, seqs=64))
    spent = simulate(work, Engine(cost, seqs=64, accept=(0.88,) * 8))
    ratio = summary(alone)["tpot"]["mean_ms"] / summary(spent)["tpot"]["mean_ms"]
    assert ratio == pytest.approx(yielded((0.88,) * 8) / (8 * 0.63 + 1), rel=0.01) == pytest.approx(0.943, rel=0.01)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="accept"):
        Engine(accept=(1.2,))
    with pytest.raises(ValueError, match="prefix and accept"):
        Engine(prefix=True, accept=(0.5,))
    with pytest.raises(ValueError, match="seqs=256.*guesses"):
        Engine(budget=512, accept=(0.5,) * 3)
    assert isinstance(simulate(Workload(column([]), column([]), column([])), Engine(accept=(0.5,))).first, array)
