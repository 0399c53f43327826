"""A log as spans: what every request did when, for Gantt charts and trace files.

From arrival to its first step a request waits; then come its prefill chunks; from the end of its prompt it decodes
until it is complete or preempted; a preempted one waits again. In a static batch a slot stays empty from its answer's
end to the batch's: wasted. Where prefill and decode are apart, its blocks are transferred in between: they wait for
room, then move. Needs a log with detail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from servelab.sched.policies import POLICIES
from servelab.sched.simulate import Log

WAITING, PREFILL, DECODE, PREEMPTED, WASTED, TRANSFER = range(6)
KINDS = ("waiting", "prefill", "decode", "preempted", "wasted", "transfer")
OUTSIDE = WAITING, PREEMPTED, TRANSFER
"""Kinds that occupy no slot."""


class Span(NamedTuple):
    """`request` did `kind` (an index of KINDS) on `replica` from `start` to `end`, ps; with `tokens`."""

    request: int
    kind: int
    start: int
    end: int
    tokens: int = 0
    replica: int = 0


def spans(log: Log) -> list[Span]:
    """All spans, request by request, each request's in order of time."""
    chunks: defaultdict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
    stops: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, rows in enumerate(log.chunks):
        for start, end, i, tokens in zip(rows[::4], rows[1::4], rows[2::4], rows[3::4], strict=True):
            chunks[i].append((start, end, tokens, number))
    for rows in log.preempted:
        for t, i, said in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
            stops[i].append((t, said))
    wasted = _wasted(log) if POLICIES[log.engine.policy].step == "batch" else {}
    out: list[Span] = []
    for i, replica in enumerate(log.replica):
        if replica >= 0:
            out += _life(log, i, chunks[i], stops[i])
            if i in wasted:
                out.append(Span(i, WASTED, log.finish[i], wasted[i], 0, replica))
    return out


def _life(log: Log, i: int, chunks: list[tuple[int, int, int, int]], stops: list[tuple[int, int]]) -> Iterator[Span]:
    """One request between its preemptions."""
    since, kind, said, at, home = log.work.arrival[i], WAITING, 0, 0, log.replica[i]
    for stop, said_then in [*stops, (log.finish[i], log.work.output[i])]:
        begun = False
        while at < len(chunks) and chunks[at][0] < stop:
            start, end, tokens, place = chunks[at]
            if start > since and begun and not tokens:
                yield Span(i, TRANSFER, since, start, log.work.prompt[i], home)
            elif start > since:
                yield Span(i, PREEMPTED if begun else kind, since, start, 0, home)
            if tokens:
                yield Span(i, PREFILL, start, end, tokens, place)
            since, begun, at = end, True, at + 1
        if stop > since:
            yield Span(i, DECODE if begun and said_then else kind, since, stop, said_then - said, home)
        since, kind, said = stop, PREEMPTED, said_then


def _wasted(log: Log) -> dict[int, int]:
    """Request → when its batch ended, where that is after its own end. A batch is who was admitted together."""
    ends: dict[tuple[int, int], int] = {}
    for i, replica in enumerate(log.replica):
        key = replica, log.admitted[i]
        ends[key] = max(ends.get(key, 0), log.finish[i])
    return {
        i: end for i, replica in enumerate(log.replica)
        if replica >= 0 and (end := ends[replica, log.admitted[i]]) > log.finish[i]
    }  # fmt: skip


def slots(found: list[Span]) -> list[tuple[int, int] | None]:
    """(replica, slot) of each span that occupies one, else None: taken at admission, left at the end or preemption."""
    starts: list[int] = []  # of each stay of a request in a slot
    ends: list[int] = []
    homes: list[int] = []
    stays: list[int] = []  # of each span, its stay
    whose = until = where = -1
    for request, kind, start, end, _, replica in found:
        if kind in OUTSIDE:
            stays.append(-1)
            continue
        if start == until and request == whose and replica == where:
            ends[-1] = end
        else:
            starts.append(start)
            ends.append(end)
            homes.append(replica)
        stays.append(len(ends) - 1)
        whose, until, where = request, end, replica
    free: defaultdict[int, list[int]] = defaultdict(list)
    busy: list[tuple[int, int, int]] = []
    count: defaultdict[int, int] = defaultdict(int)
    taken = [(0, 0)] * len(starts)
    for stay in sorted(range(len(starts)), key=starts.__getitem__):
        while busy and busy[0][0] <= starts[stay]:
            _, replica, slot = heappop(busy)
            heappush(free[replica], slot)
        replica = homes[stay]
        if free[replica]:
            slot = heappop(free[replica])
        else:
            slot = count[replica]
            count[replica] += 1
        heappush(busy, (ends[stay], replica, slot))
        taken[stay] = replica, slot
    return [taken[stay] if stay >= 0 else None for stay in stays]
