"""Routers against the closed forms, and under load against one pooled cache."""

from __future__ import annotations

from random import Random

import pytest

from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.experiments import Prefixes, chunk_sweep, routed
from servelab.sched.metrics import MS
from servelab.sched.request import PS, Workload, column
from servelab.sched.routing import ROUTERS, affinity, saved
from servelab.sched.simulate import Log, simulate

MIX = Prefixes((16, 16, 16, 15, 15) * 8, 71, 72)
FIXED = Engine(Cost(host=MS, token=20 * 10**6, graph=5 * MS, mixed=5 * MS, eager=5 * MS), block_size=16, prefix=True)


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8])
def test_what_caches_save_is_what_the_formulas_say(replicas: int) -> None:
    """n = 15.6 requests per prefix and 71 of 72 blocks shared: 92.3 % with affinity; 73.3 % round robin over four."""
    f, n = 71 / 72, 15.6
    for router in ("affinity", "round_robin"):
        assert routed(MIX, router, replicas) == pytest.approx(saved(f, n, replicas, router), rel=1e-12)
    shuffled = [routed(MIX, "random", replicas, seed) for seed in range(8)]
    assert sum(shuffled) / 8 == pytest.approx(saved(f, n, replicas, "random"), abs=0.004)


def sessions(count: int, turns: int, seed: int, tenants: int = 1) -> Workload:
    """Chats that grow by two to six blocks a turn, all under way at once."""
    rng = Random(seed)
    rows = []
    for s in range(count):
        t, chain = rng.random() * 10, []
        for _ in range(turns):
            chain = [*chain, *(s * 1000 + len(chain) + k for k in range(rng.randint(2, 6)))]
            rows.append((round(t * PS), tuple(chain), s % tenants))
            t += rng.expovariate(0.3)
    rows.sort()
    return Workload(
        column(t for t, _, _ in rows), column(16 * len(chain) for _, chain, _ in rows), column([20] * len(rows)),
        tuple(chain for _, chain, _ in rows), 16, column(tenant for _, _, tenant in rows),
    )  # fmt: skip


def loads(log: Log, replicas: int) -> list[int]:
    """Tokens that each replica computed."""
    work = log.work
    out = [0] * replicas
    for i, r in enumerate(log.replica):
        out[r] += work.prompt[i] - log.cached[i] + work.output[i]
    return out


def test_affinity_keeps_the_hits_of_one_pooled_cache_and_the_balance() -> None:
    work = sessions(200, 12, 1)
    pooled = sum(simulate(work, FIXED, 1).cached)
    log = simulate(work, FIXED, 4, affinity)
    assert sum(log.cached) >= 0.95 * pooled
    assert max(loads(log, 4)) <= 1.10 * sum(loads(log, 4)) / 4
    assert sum(simulate(work, FIXED, 4).cached) < 0.8 * pooled


def test_affinity_leaves_a_replica_that_is_too_busy() -> None:
    """Everybody shares one prefix: it is worth less than the queue it would make."""
    n = 400
    work = Workload(column([0] * n), column([32] * n), column([50] * n), tuple((1, -2 - i) for i in range(n)), 16)
    log = simulate(work, FIXED, 4, affinity)
    assert max(loads(log, 4)) <= 1.10 * sum(loads(log, 4)) / 4


def test_nothing_is_found_across_tenants() -> None:
    """The same names under another tenant are other blocks."""
    one = sessions(1, 12, 3)
    n = len(one)
    twice = Workload(
        column(t for t in one.arrival for _ in range(2)), column(p for p in one.prompt for _ in range(2)),
        column([20] * 2 * n), tuple(h for h in one.hashes or () for _ in range(2)), 16, column([0, 1] * n),
    )  # fmt: skip
    alone = list(simulate(one, FIXED, 2, affinity).cached)
    both = list(simulate(twice, FIXED, 2, affinity).cached)
    assert both[::2] == alone and both[1::2] == alone


@pytest.mark.parametrize("router", list(ROUTERS))
def test_every_request_goes_somewhere_once(router: str) -> None:
    work = sessions(30, 5, 4)
    log = simulate(work, FIXED, 3, ROUTERS[router])
    assert set(log.replica) == {0, 1, 2} and min(log.finish) > 0


def test_the_best_chunk_lies_between_two_arms() -> None:
    """A prompt of L in chunks of C takes ⌈L/C⌉·a + b·L, alone beside idle decodes; a chunk holds them up a + b·C."""
    a, b, length = 5 * MS, 20 * 10**6, 8192
    found = chunk_sweep((64, 1448, 8192), 5, length, 1, a, b)
    for chunk, row in found.items():
        steps = -(-length // chunk)
        assert row.stall == pytest.approx((a + b * (chunk + 1)) / MS)
        least = (steps * a + b * (length + steps)) / MS
        assert least <= row.ttft_p95 <= least + (a + b) / MS  # it waits for the step under way
    assert found[64].both > 2 * found[1448].both and found[8192].both > 1.3 * found[1448].both
