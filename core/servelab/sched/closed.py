"""A closed loop: so many clients, each of whom asks again when its answer is complete and it has thought.

Where arrivals are generated, an overloaded engine's queue grows without end; here it cannot grow beyond the clients.
When a request comes is not known before: a finish sets it. So the replicas go on one decision at a time, always the one
that is behind, and never past the next arrival.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heapify, heappop, heappush

from servelab.kv.limits import within
from servelab.sched.engine import Engine
from servelab.sched.replica import FOREVER
from servelab.sched.request import MAX_ARRIVAL, Workload, column
from servelab.sched.routing import Router, round_robin
from servelab.sched.simulate import Log, blank, crew


def closed(
    work: Workload, engine: Engine, clients: int, think: int = 0, replicas: int = 1, router: Router = round_robin,
    detail: bool = False,
) -> Log:  # fmt: skip
    """The workload's requests in their order, `clients` at a time, `think` ps after an answer; arrivals are set here.

    A request that no pool could hold is refused, and its client thinks again. ValueError for no client.
    """
    within("clients", clients, 1, 2**24, "give at least one client")
    within("think", think, 0, MAX_ARRIVAL // max(1, len(work)), "give the time between answer and question in ps")
    log = blank(replace(work, arrival=column([0]) * len(work)), engine, replicas)
    fleet = crew(log, replicas, detail)
    choose, pool = router(fleet, log.work), engine.blocks * engine.block_size
    due = [0] * min(clients, len(work))  # when the clients who think ask again
    heapify(due)
    out: list[set[int]] = [set() for _ in fleet]  # by replica, who waits for an answer
    sent = 0
    while sent < len(work) or any(out):
        until = due[0] if due and sent < len(work) else FOREVER
        busy = [number for number in range(len(fleet)) if out[number]]
        behind = min(busy, key=lambda r: fleet[r].clock, default=-1)
        if busy and fleet[behind].clock < until:
            others = [fleet[r].now + think for r in busy if r != behind]  # their next answers bring nothing before
            fleet[behind].turn(min(until, *others, FOREVER))
            for i in [i for i in out[behind] if log.finish[i] >= 0]:
                out[behind].discard(i)
                heappush(due, log.finish[i] + think)
            continue
        i, sent = sent, sent + 1
        log.work.arrival[i] = heappop(due)
        if work.prompt[i] + max(work.output[i] - 1, 0) > pool:
            heappush(due, log.work.arrival[i] + think)
            continue
        number = log.replica[i] = choose(i)
        fleet[number].push(i)
        out[number].add(i)
    return log
