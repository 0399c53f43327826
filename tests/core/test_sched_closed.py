"""Closed loops against Little's law, a second implementation and, with one client, plain sums."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sched_simulate import engines, workloads

from servelab.sched.closed import closed
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.request import Workload, column
from servelab.sched.routing import ROUTERS
from servelab.sched.simulate import simulate

STEP = 1_000


def test_one_client_asks_one_thing_after_the_other() -> None:
    work = Workload(column([0] * 5), column([3] * 5), column([4, 1, 0, 2, 9]))
    log = closed(work, Engine(Cost(graph=STEP, mixed=STEP, eager=STEP)), 1, think=77)
    at = 0
    for i, output in enumerate(work.output):
        assert (log.work.arrival[i], log.finish[i]) == (at, at + STEP * max(output, 1))
        at = log.finish[i] + 77


@settings(max_examples=300, deadline=None)
@given(workloads(), engines(), st.integers(1, 5), st.sampled_from([0, 1, 40, 700]), st.integers(1, 3),
       st.sampled_from(list(ROUTERS)))  # fmt: skip
def test_its_arrivals_replayed_give_the_same_run(
    work: Workload, engine: Engine, clients: int, think: int, replicas: int, router: str
) -> None:
    """What came when is known afterwards: an open run with those arrivals is the same; so many are in it at most."""
    log = closed(work, engine, clients, think, replicas, ROUTERS[router], detail=True)
    again = simulate(log.work, engine, replicas, ROUTERS[router], detail=True)
    assert (again.finish, again.first, again.admitted) == (log.finish, log.first, log.admitted)
    moments = [(t, 1) for t, r in zip(log.work.arrival, log.replica, strict=True) if r >= 0]
    moments += [(t, -1) for t, r in zip(log.finish, log.replica, strict=True) if r >= 0]
    inside = 0
    for _, change in sorted(moments, key=lambda moment: (moment[0], moment[1])):
        inside += change
        assert inside <= clients


@pytest.mark.parametrize(("clients", "think"), [(1, 0), (8, 0), (8, 50 * STEP), (40, 900 * STEP)])
def test_littles_law_counts_the_clients(clients: int, think: int) -> None:
    """clients = rate · (time in the engine + thinking), once nobody is starting or leaving."""
    n = 4000
    work = Workload(column([0] * n), column([8] * n), column([16] * n))
    log = closed(work, Engine(Cost(graph=STEP, mixed=STEP, eager=STEP), seqs=8), clients, think)
    span = max(log.finish)
    stay = sum(end - t for end, t in zip(log.finish, log.work.arrival, strict=True)) / n
    assert n / span * (stay + think) == pytest.approx(clients, rel=0.02)


def test_no_client_is_no_loop() -> None:
    with pytest.raises(ValueError, match="clients=0"):
        closed(Workload(column([0]), column([1]), column([1])), Engine(), 0)
    assert not len(closed(Workload(column([]), column([]), column([])), Engine(), 3).finish)
    huge = Workload(column([0, 0]), column([100, 1]), column([1, 1]))
    log = closed(huge, Engine(Cost(), blocks=2), 1)
    assert list(log.replica) == [-1, 0]
