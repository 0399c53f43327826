"""Which replica gets a request.

A router is made for a run and then asked request by request, when each arrives. `round_robin` looks at nothing,
`random` neither; `least_load` sends to the replica with the fewest tokens to compute. `affinity` knows to whom it sent
each block of each prompt (a hash names a block with all before it, so the deepest known one is the longest shared
prefix) and sends where the prompt would be through first: tokens ahead of it and its own that are not cached there.

Without eviction, with n requests per prefix, a share f of each prompt in it, and W replicas, one cache saves
f·(1 − 1/n) of the prompt tokens; affinity as much; replicas that all see every prefix f·(1 − W/n); and in random order
f·(1 − W·(1 − (1 − 1/W)^n)/n), since a prefix meets W·(1 − (1 − 1/W)^n) of the replicas (`saved`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TYPE_CHECKING

from servelab.sched.request import Workload

if TYPE_CHECKING:
    from servelab.sched.replica import Replica
    from servelab.sched.speculate import Speculating

Choose = Callable[[int], int]
"""Request → replica."""

Fleet = Sequence["Replica | Speculating"]

Router = Callable[[Fleet, Workload], Choose]


def round_robin(replicas: Fleet, work: Workload) -> Choose:
    """In turn, whatever their load."""
    count = len(replicas)
    return lambda i: i % count


def random(replicas: Fleet, work: Workload) -> Choose:
    """By a fair die, the same in every run."""
    rng, count = Random(0), len(replicas)
    return lambda i: rng.randrange(count)


def least_load(replicas: Fleet, work: Workload) -> Choose:
    """To the replica with the fewest tokens still to compute; ties go to the lowest number."""
    return lambda i: min(range(len(replicas)), key=lambda r: (replicas[r].load, r))


def affinity(replicas: Fleet, work: Workload) -> Choose:
    """To the replica that was given the longest prefix of the prompt, unless the least loaded one is through sooner."""
    home: dict[Hashable, int] = {}

    def choose(i: int) -> int:
        names = work.hashes[i] if work.hashes else ()
        keys = [(work.tenant[i], name) for name in names] if work.tenant else names
        best = min(range(len(replicas)), key=lambda r: (replicas[r].load, r))
        for depth in range(len(keys), 0, -1):
            if (near := home.get(keys[depth - 1])) is not None:
                if replicas[near].load - min(depth * work.hash_block, work.prompt[i]) <= replicas[best].load:
                    best = near
                break
        home.update(dict.fromkeys(keys, best))
        return best

    return choose


ROUTERS: dict[str, Router] = {
    "round_robin": round_robin,
    "random": random,
    "least_load": least_load,
    "affinity": affinity,
}
"""Routers by name."""

BLIND = {round_robin, random}
"""Routers that look at no replica's state: the others need not be brought up to date for them."""


def saved(f: float, n: float, workers: int, router: str) -> float:
    """Share of prompt tokens that prefix caches save in steady traffic: the closed forms above.

    ValueError for a router without one.
    """
    if router == "affinity":
        return f * (1 - 1 / n)
    if router == "round_robin":
        return f * max(0.0, 1 - workers / n)
    if router == "random":
        seen = workers * (1 - math.pow(1 - 1 / workers, n))
        return f * (1 - seen / n)
    raise ValueError(f"there is no closed form for {router!r}; use affinity, round_robin or random")
