"""Spans against the step-by-step reference's events, and the trace file against the rules of its format."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from test_sched_simulate import engines, workloads

from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.perfetto import to_json
from servelab.sched.reference import Reference
from servelab.sched.request import PS, Workload, column
from servelab.sched.simulate import simulate
from servelab.sched.timeline import DECODE, OUTSIDE, PREEMPTED, PREFILL, WAITING, WASTED, Span, slots, spans
from servelab.view.export import to_perfetto
from servelab.view.schedule import QUEUE, gantt_panel
from studios.batcher import view as batcher
from studios.batcher.run import played


@settings(max_examples=400, deadline=None)
@given(workloads(), engines())
def test_spans_tile_every_life_and_agree_with_the_reference(work: Workload, engine: Engine) -> None:
    log = simulate(work, engine, detail=True)
    found = spans(log)
    told = Reference(work, engine).run()
    for i, replica in enumerate(log.replica):
        mine = [span for span in found if span.request == i and span.kind != WASTED]
        if replica < 0:
            assert not mine
            continue
        edges = [work.arrival[i], *(span.end for span in mine)]
        assert [span.start for span in mine] == edges[:-1] and edges[-1] == log.finish[i]
        prefilled = [(t, n) for t, kind, who, n in told if kind == "chunk" and who == i]
        assert [(span.start, span.tokens) for span in mine if span.kind == PREFILL] == prefilled
        stopped = [t for t, kind, who, _ in told if kind == "preempt" and who == i]
        waited = [span.start for span in mine if span.kind == PREEMPTED]
        assert set(stopped) - set(waited) <= {span.start for span in mine if span.kind in (WAITING, PREFILL, DECODE)}


def peak(stays: list[tuple[int, int]]) -> int:
    """Most stays at one time; one that ends as another begins makes room for it."""
    changes = sorted([(start, 1) for start, _ in stays] + [(end, -1) for _, end in stays])
    return max(itertools.accumulate(change for _, change in changes), default=0)


@settings(max_examples=200, deadline=None)
@given(workloads(), engines())
def test_the_queue_stands_under_the_slots(work: Workload, engine: Engine) -> None:
    """Nobody waits in a slot's row, and of the queue's rows only the last is shared."""
    log = simulate(work, engine, detail=True)
    found = spans(log)
    panel = gantt_panel(log, found, "slots", "", "")
    taken = {row for row, span in zip(panel.row.data, found, strict=True) if span.kind not in OUTSIDE}
    queue = defaultdict(list)
    for row, span in zip(panel.row.data, found, strict=True):
        assert 0 <= row < panel.rows
        if span.kind in OUTSIDE:
            assert row not in taken
            queue[row].append((span.start, span.end))
    for row, waits in queue.items():
        assert len(queue) == QUEUE and row == max(queue) or peak(waits) == 1
    assert len(queue) == min(QUEUE, peak([wait for waits in queue.values() for wait in waits]))


@settings(max_examples=200, deadline=None)
@given(workloads(), engines())
def test_a_slot_holds_one_request_at_a_time(work: Workload, engine: Engine) -> None:
    log = simulate(work, engine, detail=True)
    found = spans(log)
    lanes = defaultdict(list)
    for span, place in zip(found, slots(found), strict=True):
        assert (place is None) == (span.kind in OUTSIDE)
        if place:
            assert place[0] == span.replica
            lanes[place].append((span.start, span.end))
    for rows in lanes.values():
        rows.sort()
        assert all(end <= start for (_, end), (start, _) in zip(rows, rows[1:], strict=False))
    assert len(lanes) == peak([row for rows in lanes.values() for row in rows])  # none is kept while its owner is away
    if engine.policy != "static":  # there the empty ends of a batch stay in their slots
        assert len(lanes) <= engine.seqs


def test_a_slot_is_free_while_its_owner_is_away() -> None:
    """Preempted from 5 to 8, during which another comes; back again, and then decoding on another replica."""
    found = [
        Span(0, PREFILL, 0, 2), Span(0, DECODE, 2, 5), Span(0, PREEMPTED, 5, 8), Span(0, PREFILL, 8, 9),
        Span(0, DECODE, 9, 12, 0, 1), Span(1, PREFILL, 6, 7), Span(1, DECODE, 7, 10),
    ]  # fmt: skip
    assert slots(found) == [(0, 0), (0, 0), None, (0, 1), (1, 0), (0, 0), (0, 0)]


def test_a_static_batch_wastes_the_slots_of_short_answers() -> None:
    """Padding is 1 − Σo/(S·Σ max o) of the decode steps: 10 and 4 tokens leave 6 of 20 empty."""
    work = Workload(column([0, 0]), column([1, 1]), column([11, 5]))
    log = simulate(work, Engine(Cost(graph=PS, mixed=PS, eager=PS), "static"), detail=True)
    wasted = [span for span in spans(log) if span.kind == WASTED]
    assert [(span.request, (span.end - span.start) // PS) for span in wasted] == [(1, 6)]


@settings(max_examples=100, deadline=None)
@given(workloads(), engines())
def test_the_trace_keeps_the_rules_of_its_format(work: Workload, engine: Engine) -> None:
    trace = json.loads(to_json(simulate(work, engine, detail=True), {"made_by": "a test"}))
    needs = {
        "X": {"ts", "dur", "pid", "tid", "name"}, "C": {"ts", "pid", "name", "args"}, "i": {"ts", "s", "name"},
        "M": {"name", "pid", "args"}, "b": {"ts", "id", "cat", "name"}, "e": {"ts", "id", "cat", "name"},
    }  # fmt: skip
    threads = defaultdict(list)
    opened = defaultdict(int)
    for event in trace["traceEvents"]:
        assert needs[event["ph"]] <= event.keys() and event.get("ts", 0) >= 0
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
        if event["ph"] in "be":
            opened[event["id"]] += 1 if event["ph"] == "b" else -1
    assert set(opened.values()) <= {0}
    for rows in threads.values():
        rows.sort()
        assert all(a + dur <= b + 1e-6 for (a, dur), (b, _) in zip(rows, rows[1:], strict=False))


def test_a_page_exports_what_its_timeline_shows_in_microseconds() -> None:
    state = replace(batcher.State(), prefills=1, requests=40, traffic="long", rows="slots")
    frame = batcher.view(state, {})
    log, found = played(replace(state, slo="8B, server"))
    events = json.loads(to_perfetto(frame, {}, "a test"))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    busy = [span for span in found if span.kind in (PREFILL, DECODE)]
    assert len(slices) == len(busy)
    assert sum(event["dur"] for event in slices) == pytest.approx(sum(s.end - s.start for s in busy) / 1e6, rel=1e-3)
    begun = [event for event in events if event["ph"] == "b"]
    assert len(begun) == len([event for event in events if event["ph"] == "e"]) == len(found) - len(busy)
    assert {event["cat"] for event in begun} <= {"waiting", "transfer"}
    whole = json.loads(to_json(log, {}))["traceEvents"]  # the command line's, of the same log
    assert len([event for event in whole if event["ph"] == "X"]) == len(busy)


def test_who_waits_is_drawn_under_the_slots() -> None:
    """In rows of their own: nobody over a slot, and no two over each other while there are rows."""
    state = replace(batcher.State(), rate=30.0, slots=8)
    log, found = played(state)
    panel = gantt_panel(log, found, "slots", "", "")
    rows = list(zip(panel.row.data, panel.type.data, panel.start.data, panel.end.data, strict=True))
    slot_rows = {row for row, kind, *_ in rows if kind in (PREFILL, DECODE)}
    queue_rows = {row for row, kind, *_ in rows if kind == WAITING}
    assert len(slot_rows) == 8 and queue_rows and min(queue_rows) > max(slot_rows) + 1 and max(queue_rows) < panel.rows
    for row in queue_rows - {max(queue_rows)}:
        mine = sorted((start, end) for at, _, start, end in rows if at == row)
        assert all(end <= then for (_, end), (then, _) in zip(mine, mine[1:], strict=False))


@pytest.mark.parametrize("name", ["chunked", "continuous", "static", "pressure", "prefixes", "apart"])
def test_a_decode_has_a_tick_for_each_of_its_tokens(name: str) -> None:
    """Ends of iterations that lie in it, as a page draws them, against its tokens; the first came with the prompt."""
    log, found = played(batcher.PRESETS[name].state)
    panel = gantt_panel(log, found, "slots", "", "")
    columns = panel.first.data, panel.start.data, panel.end.data, panel.tokens.data
    counted = 0
    for first, start, end, tokens in zip(*columns, strict=True):
        if first < 0:
            continue
        ticks = []
        run = first
        while panel.begin.data[run] < end:
            begin, each, times = panel.begin.data[run], panel.each.data[run], panel.times.data[run]
            ticks += [begin + k * each for k in range(1, times + 1)]
            run += 1
        assert sum(start + 0.05 < t < end + 0.05 for t in ticks) == tokens - 1
        counted += 1
    assert counted >= len(log.work) * 0.9
