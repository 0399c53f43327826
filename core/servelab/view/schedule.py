"""A scheduler's log as panels: spans in slots or requests, curves along the clock, and a story. A tick is 1 ms."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import itemgetter

from servelab.sched.simulate import Log
from servelab.sched.timeline import DECODE, KINDS, PREEMPTED, PREFILL, TRANSFER, WAITING, WASTED, Span, slots
from servelab.view.frame import Area, Column, f32, i32
from servelab.view.gantt import Gantt
from servelab.view.words import Text

TICK = 10**9
"""ps in a tick."""

QUEUE = 12
"""Rows of the queue under the slots."""

FOREVER = 2**63
"""A tick that never comes."""

LAST = 2**24
"""The last tick up to which float32 columns of spans are good to 1 ms: 4 hours and 40 minutes."""


def gantt_panel(log: Log, found: list[Span], rows: str, title: str, caption: str, area: Area = "stage") -> Gantt:
    """`rows`: "slots" (who occupies a place in the engine, and under them the queue) or "requests"."""
    request, kind, start, end, tokens, _ = zip(*found, strict=True) if found else ((),) * 6
    row, count = _rows(log, found) if rows == "slots" else (request, len(log.work))
    present = set(kind)
    return Gantt(
        "gantt", title, area, "slot" if rows == "slots" else "request", count, KINDS,
        tuple(name for k, name in enumerate(KINDS) if k in present), caption, i32(row), i32(request), i32(kind),
        f32([t / TICK for t in start]), f32([t / TICK for t in end]), i32(tokens), *_iterations(log, found),
    )  # fmt: skip


def _iterations(log: Log, found: list[Span]) -> tuple[Column, Column, Column, Column]:
    """The first run of each decode; and of all runs the begin, the time of one iteration, and how many give tokens."""
    begin: list[float] = []
    each: list[float] = []
    times: list[int] = []
    offsets: list[int] = []
    for steps in log.steps:
        offsets.append(len(begin))
        begin += [*[t / TICK for t in steps[::7]], math.nan]
        each += [*[took / count / TICK for took, count in zip(steps[6::7], steps[1::7], strict=True)], 0.0]
        times += [*[n and count for n, count in zip(steps[2::7], steps[1::7], strict=True)], 0]
    starts = [steps[::7] for steps in log.steps]
    first = [
        offsets[span.replica] + bisect_left(starts[span.replica], span.start) if span.kind == DECODE else -1
        for span in found
    ]
    return i32(first), f32(begin), f32(each), i32(times)


def _rows(log: Log, found: list[Span]) -> tuple[list[int], int]:
    """Of each span its slot, those of a replica under those of the one before, or its row in the queue; how many."""
    places = slots(found)
    most = [0] * len(log.steps)
    for place in places:
        if place and place[1] >= most[place[0]]:
            most[place[0]] = place[1] + 1
    above = [sum(most[:replica]) + replica for replica in range(len(most))]  # an empty row between two replicas
    count = sum(most) + len(most)
    rows = [above[place[0]] + place[1] if place else count for place in places]
    waits = [k for k, place in enumerate(places) if not place]
    queue = _stacked([found[k] for k in waits])
    for k, row in zip(waits, queue, strict=True):
        rows[k] += row
    return rows, count + 1 + max(queue, default=-2)


def _stacked(waits: list[Span]) -> list[int]:
    """Of each who waits, the first row that is free; the last of QUEUE rows takes all for whom there is none."""
    out = [0] * len(waits)
    rows = 0
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for k in sorted(range(len(waits)), key=[span.start for span in waits].__getitem__):
        start, end = waits[k].start, waits[k].end
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if free:
            row = heappop(free)
        else:
            row, rows = rows, rows + 1
        heappush(busy, (end, row))
        out[k] = min(row, QUEUE - 1)
    return out


@dataclass(frozen=True, slots=True)
class Curves:
    """By tick `t`, holding until the next: decodes, those who wait, KV blocks in use, tokens an iteration."""

    t: Column
    running: Column
    waiting: Column
    blocks: Column
    tokens: Column


def curves(log: Log, found: list[Span]) -> Curves:
    """Of a log with detail, all replicas together, at every tick at which a step begins or the engine comes to rest."""
    waits = [span for span in found if span.kind in (WAITING, PREEMPTED)]
    begins = sorted([span.start // TICK for span in waits]) + [FOREVER]
    ends = sorted([span.end // TICK for span in waits]) + [FOREVER]
    now = [(0, 0, 0)] * len(log.steps)  # of each replica
    running = blocks = tokens = begun = ended = 0
    at: dict[int, tuple[int, int, int, int]] = {}
    for tick, replica, n, held, took in _changes(log):
        before, now[replica] = now[replica], (n, held, took)
        running += n - before[0]
        blocks += held - before[1]
        tokens += took - before[2]
        while begins[begun] <= tick:
            begun += 1
        while ends[ended] <= tick:
            ended += 1
        at[tick] = running, begun - ended, blocks, tokens
    columns = zip(*at.values(), strict=True) if at else ((),) * 4
    return Curves(i32(at), *map(i32, columns))


def _changes(log: Log) -> list[tuple[int, int, int, int, int]]:
    """(tick, replica, decodes, KV blocks, tokens) whenever a step begins, and zeros when a replica comes to rest."""
    out: list[tuple[int, int, int, int, int]] = []
    for replica, (steps, held) in enumerate(zip(log.steps, log.held, strict=True)):
        end = -1
        for start, n, tokens, took, blocks in zip(steps[::7], steps[2::7], steps[5::7], steps[6::7], held, strict=True):
            begin = start // TICK
            if 0 <= end < begin:
                out.append((end, replica, 0, 0, 0))
            out.append((begin, replica, n, blocks, n + tokens))
            end = (start + took) // TICK
        if end >= 0:
            out.append((end, replica, 0, 0, 0))
    return sorted(out, key=itemgetter(0)) if len(log.steps) > 1 else out


TEMPLATES = (
    "Request {0} waits; before it in the queue: {1}",
    "Request {0} enters after {1} ms; its prompt has {2} tokens",
    "Request {0} has its first token, {1} ms after it came",
    "Request {0} is complete: {1} tokens in {2} ms",
    "Request {0} is preempted after {1} tokens: no KV block is left",
    "Request {0} is refused",
)


def story(log: Log, found: list[Span], title: str, area: Area = "side") -> Text:
    """What happens to whom, in order of time."""
    lines: list[tuple[int, int, int, int, int]] = []
    work, ms = log.work, TICK
    arrivals = sorted((span.start, span.end) for span in found if span.kind == WAITING)
    before = _before(arrivals)
    for i, arrival in enumerate(work.arrival):
        if log.replica[i] < 0:
            lines.append((arrival // TICK, 5, i, 0, 0))
            continue
        if log.admitted[i] > arrival:
            lines.append((arrival // TICK, 0, i, before[arrival, log.admitted[i]], 0))
        lines.append((log.admitted[i] // TICK, 1, i, (log.admitted[i] - arrival) // ms, work.prompt[i]))
        if log.first[i] >= 0:
            lines.append((log.first[i] // TICK, 2, i, (log.first[i] - arrival) // ms, 0))
        lines.append((log.finish[i] // TICK, 3, i, work.output[i], (log.finish[i] - arrival) // ms))
    for rows in log.preempted:
        lines += [(t // TICK, 4, i, said, 0) for t, i, said in zip(rows[::3], rows[1::3], rows[2::3], strict=True)]
    columns = [i32(column) for column in zip(*sorted(lines), strict=True)] or [i32(())] * 5
    t, template, a0, a1, a2 = columns
    return Text("story", title, area, (), TEMPLATES, t, template, a0, a1, a2, i32([0] * len(lines)))


def _before(waits: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """By (arrival, admission), given in order: how many of those who came earlier still wait then."""
    out: dict[tuple[int, int], int] = {}
    here: list[int] = []
    for arrival, admitted in waits:
        while here and here[0] <= arrival:
            heappop(here)
        out[arrival, admitted] = len(here)
        heappush(here, admitted)
    return out


def gaps(log: Log, found: list[Span], i: int) -> list[tuple[int, int, str]]:
    """Why request i waited, longest first: (start ps, ps, words). All its waits of at least 1 ms before its end."""
    mine = [span for span in found if span.request == i]
    out = []
    for span in mine:
        if span.kind == WAITING:
            ahead = [s for s in found if s.kind == PREFILL and span.start <= s.start < span.end]
            tokens, whose = sum(s.tokens for s in ahead), len({s.request for s in ahead})
            words = f"waits in the queue while {tokens:,} prompt tokens of {whose:,} others are computed"
            out.append((span.start, span.end - span.start, words))
        elif span.kind == PREEMPTED:
            out.append((span.start, span.end - span.start, "gave its KV blocks to others and waits to come back"))
        elif span.kind == TRANSFER:
            words = f"its {span.tokens:,} prompt tokens wait for room on a decode replica, and move there"
            out.append((span.start, span.end - span.start, words))
        elif span.kind == DECODE:
            out += [(t, took, words) for t, took, words in _stalls(log, found, span)]
        elif span.kind == WASTED:
            out.append((span.start, span.end - span.start, "its slot stays empty until the whole batch is done"))
    return sorted((row for row in out if row[1] >= TICK), key=lambda row: -row[1])


def _stalls(log: Log, found: list[Span], decode: Span) -> Iterator[tuple[int, int, str]]:
    """Steps with others' prompts during a decode: every token of it waits for them."""
    ahead = [
        s for s in found if s.kind == PREFILL and s.replica == decode.replica and decode.start <= s.start < decode.end
    ]
    by_step: dict[tuple[int, int], list[Span]] = {}
    for span in ahead:
        by_step.setdefault((span.start, span.end), []).append(span)
    for (start, end), parts in by_step.items():
        names = ", ".join(f"{s.tokens:,} tokens of request {s.request}" for s in parts[:3])
        more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
        yield start, end - start, f"a token waits for the prompt chunk of {names}{more} in the same step"
