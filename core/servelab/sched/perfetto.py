"""A log as a trace for ui.perfetto.dev: the Trace Event Format's JSON object form.

A replica is a process, a slot a thread: prefill chunks, decodes and the empty ends of static batches are slices ("X"),
preemptions instants ("i"), and what a step computes counters ("C"). Waiting requests have a process of their own, with
asynchronous slices ("b", "e"), since they overlap. Times are µs, the format's unit, with the picoseconds as decimals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from servelab.sched.simulate import Log
from servelab.sched.timeline import KINDS, Span, slots, spans

Event = dict[str, Any]
QUEUE = 1_000_000
"""The process of those who wait."""


def events(log: Log) -> Iterator[Event]:
    """Every event, names first."""
    found = spans(log)
    places = slots(found)
    yield _name("process_name", QUEUE, 0, "queue")
    for replica in range(len(log.steps)):
        yield _name("process_name", replica, 0, f"replica {replica}")
    for replica, slot in sorted({place for place in places if place}):
        yield _name("thread_name", replica, slot + 1, f"slot {slot}")
    for number, (span, place) in enumerate(zip(found, places, strict=True)):
        if not place:
            common = {"cat": "queue", "name": f"request {span.request} {KINDS[span.kind]}", "pid": QUEUE, "tid": 0}
            yield {"ph": "b", "ts": us(span.start), "id": number, **common}
            yield {"ph": "e", "ts": us(span.end), "id": number, **common}
        else:
            yield _slice(span, *place)
    for replica, rows in enumerate(log.preempted):
        for t, i, said in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
            args = {"request": i, "tokens generated": said}
            yield {"ph": "i", "s": "p", "ts": us(t), "pid": replica, "tid": 0, "name": "preempted", "args": args}
    for replica, steps in enumerate(log.steps):
        yield from _counters(replica, steps.tolist())


def _slice(span: Span, replica: int, slot: int) -> Event:
    args = {"request": span.request, "tokens": span.tokens}
    return {
        "ph": "X", "ts": us(span.start), "dur": us(span.end - span.start), "pid": replica, "tid": slot + 1,
        "name": f"{KINDS[span.kind]} {span.request}", "cat": KINDS[span.kind], "args": args,
    }  # fmt: skip


def _counters(replica: int, steps: list[int]) -> Iterator[Event]:
    """Decodes and prompt tokens of a step, where they change, and zero after the last."""
    before, end = None, 0
    for k in range(0, len(steps), 7):
        start, _, n, _, _, tokens, took = steps[k : k + 7]
        if end and start > end and before != (0, 0):
            before = (0, 0)
            yield _counter(replica, end, 0, 0)
        if (n, tokens) != before:
            before = n, tokens
            yield _counter(replica, start, n, tokens)
        end = start + took
    if end:
        yield _counter(replica, end, 0, 0)


def _counter(replica: int, t: int, n: int, tokens: int) -> Event:
    args = {"decodes": n, "prompt tokens": tokens}
    return {"ph": "C", "ts": us(t), "pid": replica, "name": "step", "args": args}


def _name(kind: str, pid: int, tid: int, text: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}}


def us(ps: int) -> float:
    """Picoseconds as microseconds; whole ones stay exact."""
    return ps // 10**6 if not ps % 10**6 else ps / 10**6


def to_json(log: Log, about: dict[str, Any]) -> str:
    """The file: events, and `about` (what made it) beside them."""
    body = {"traceEvents": list(events(log)), "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)
