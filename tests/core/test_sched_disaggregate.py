"""Prefill and decode apart: a second implementation, what memory allows to be under way, and nobody is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sched_simulate import engines, rows, workloads

from servelab.sched.cost import Cost
from servelab.sched.disaggregate import Pools, disaggregate
from servelab.sched.engine import Engine
from servelab.sched.request import Workload, column
from servelab.sched.simulate import simulate
from servelab.sched.timeline import KINDS, spans

PREFILL, DECODE = 50, 7


def steps_of(ps: int, **rest: int) -> Engine:
    """An engine whose steps all take so long."""
    return Engine(Cost(graph=ps, mixed=ps, eager=ps), **rest)  # type: ignore[arg-type]


def plain(work: Workload, transfer: int) -> list[int]:
    """When each request ends: one replica of each kind, one prompt at a time, room for all."""
    free, offers = 0, []
    for i, arrival in enumerate(work.arrival):
        free = max(arrival, free) + PREFILL
        offers.append((free, i))
    ends = {i: t for t, i in offers if work.output[i] <= 1}
    offers = [(t, i) for t, i in offers if work.output[i] > 1]
    now, link = 0, 0
    landing: list[tuple[int, int]] = []
    left: dict[int, int] = {}
    while offers or landing or left:
        left |= {i: work.output[i] - 1 for t, i in landing if t <= now}
        landing = [(t, i) for t, i in landing if t > now]
        for t, i in [offer for offer in offers if offer[0] <= now]:
            link = max(now, t, link) + transfer * work.prompt[i]
            landing.append((link, i))
        offers = [offer for offer in offers if offer[0] > now]
        if not left:
            now = max(now, min(t for t, _ in offers + landing)) if offers or landing else now
            continue
        now += DECODE
        left = {i: k - 1 for i, k in left.items()}
        ends |= {i: now for i, k in left.items() if not k}
        left = {i: k for i, k in left.items() if k}
    return [ends[i] for i in range(len(work))]


@settings(max_examples=500, deadline=None)
@given(workloads(), st.sampled_from([0, 1, 3, 20]))
def test_requests_end_when_a_plain_loop_says_so(work: Workload, transfer: int) -> None:
    pools = Pools(steps_of(PREFILL, seqs=1), steps_of(DECODE), transfer=transfer)
    assert list(disaggregate(work, pools).finish) == plain(work, transfer)


@settings(max_examples=500, deadline=None)
@given(workloads(), engines(), engines(), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0, 2, 50]))
def test_every_request_ends_once_or_is_refused(
    work: Workload, ahead: Engine, behind: Engine, prefills: int, decodes: int, transfer: int
) -> None:
    size = behind.block_size
    pools = Pools(replace(ahead, block_size=size), behind, prefills, decodes, transfer)
    log = disaggregate(work, pools, detail=True)
    for i, replica in enumerate(log.replica):
        whole = work.prompt[i] + max(work.output[i] - 1, 0)
        too_long = work.prompt[i] > ahead.blocks * size or whole > behind.blocks * size
        assert (replica < 0) == too_long
        if replica >= 0:
            assert work.arrival[i] <= log.admitted[i] < log.finish[i]
            assert (log.first[i] < 0) == (work.output[i] == 0)
            assert (replica >= prefills) == (work.output[i] > 1)
    for r, held in enumerate(log.held):
        assert all(0 <= blocks <= (ahead if r < prefills else behind).blocks for blocks in held)
    for span in spans(log):
        assert span.start < span.end and span.kind in range(len(KINDS))


def test_with_room_for_all_first_tokens_come_as_without_decodes() -> None:
    work = Workload(column(range(0, 4000, 100)), column([300] * 40), column([20] * 40))
    ahead = Engine(Cost(token=5, graph=9, mixed=40, eager=80), budget=512, seqs=16)
    alone = simulate(replace(work, output=column([1] * 40)), ahead)
    log = disaggregate(work, Pools(ahead, steps_of(DECODE), transfer=1))
    assert log.first == alone.first


@pytest.mark.parametrize("held", [2, 3, 5])
def test_who_is_under_way_holds_a_whole_prompt(held: int) -> None:
    """A pool of `held` sequences: hand-offs and running ones together never exceed it, and prompts wait at the other
    side. With a slow link throughput is the link's; with a fast one, the pool's (aiconfigurator #1380)."""
    n, prompt, output, size = 60, 64, 16, 16
    work = Workload(column([0] * n), column([prompt] * n), column([output] * n))
    blocks = held * (prompt + output) // size
    for transfer in (0, 30):
        pools = Pools(steps_of(1, blocks=held * prompt // size), steps_of(DECODE, blocks=blocks), transfer=transfer)
        log = disaggregate(work, pools, detail=True)
        assert not any(len(gone) for gone in log.preempted)
        assert max(row[1] and row[2] for row in rows(log.steps[1], 7)) <= held
        assert max(log.held[1]) <= blocks and max(log.held[0]) <= held * prompt // size
        served = (output - 1) * DECODE
        bound = max(transfer * prompt * n, n / held * (served + transfer * prompt))
        assert max(log.finish) == pytest.approx(bound, rel=0.35)
        assert max(log.finish) >= max(transfer * prompt * n, n / held * served)


def test_pools_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="prefills=0"):
        Pools(Engine(), Engine(), 0)
    with pytest.raises(ValueError, match="block size"):
        Pools(Engine(block_size=16), Engine(block_size=32))
