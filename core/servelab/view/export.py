"""A Frame as files: CSV for spreadsheets, JSON for programs, a Chrome/Perfetto trace for ui.perfetto.dev.

Trace format: the Trace Event Format's JSON object form ("ph": "C" counters, "X" slices, "b" and "e" asynchronous ones,
"i" instants), which counts in microseconds.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from servelab.view.frame import Frame, round9
from servelab.view.gantt import Gantt
from servelab.view.metric import Metric
from servelab.view.words import Table, Text

State = dict[str, str]
"""Every setting as URL text, defaults included: what it takes to make the file again."""


def to_csv(frame: Frame, state: State, made: str) -> str:
    """Sections, each with a title row: what made it, the state, the metrics, every table, then the series by tick."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([f"# {made}"])
    rows.writerow(["# state"])
    rows.writerows(sorted(state.items()))
    rows.writerow(["# metrics"])
    rows.writerow(["metric", "value", "unit", "basis"])
    for m in _metrics(frame):
        rows.writerow([m.title, _number(m.value), m.unit, m.basis])
    for table in (p for p in frame.panels if isinstance(p, Table)):
        rows.writerow([f"# {table.title}"])
        rows.writerow([f"{heading} ({unit})" if unit else heading for heading, unit in table.columns])
        rows.writerows([_number(cell) for cell in row] for row in table.rows)
    for m in _metrics(frame):
        if m.t is not None and m.series is not None:
            rows.writerow([f"# {m.title} by tick"])
            rows.writerow(["tick", f"{m.title} ({m.unit})"])
            rows.writerows([t, _number(float(v))] for t, v in zip(m.t.data, m.series.data, strict=True))
    return out.getvalue()


def to_json(frame: Frame, state: State, made: str) -> str:
    """What made it, state, headline, metrics and tables as one JSON object, keys sorted."""
    body = {
        "made_by": made,
        "state": state,
        "headline": frame.headline,
        "metrics": [{"id": m.id, "title": m.title, "value": _number(m.value), "unit": m.unit, "basis": m.basis}
                    for m in _metrics(frame)],
        "tables": [{"id": t.id, "title": t.title, "columns": t.columns, "basis": t.basis,
                    "rows": [[_number(cell) for cell in row] for row in t.rows]}
                   for t in frame.panels if isinstance(t, Table)],
    }
    return json.dumps(body, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def to_perfetto(frame: Frame, state: State, made: str) -> str:
    """Counters from every metric with a series, slices from every timeline, instants from every story line.

    A tick that is no time is written as one microsecond.
    """
    events: list[dict[str, Any]] = []
    us = 1000 if frame.clock and frame.clock.unit == "ms" else 1
    for m in _metrics(frame):
        if m.t is not None and m.series is not None:
            events += [
                {"ph": "C", "pid": 1, "name": m.title, "ts": t * us, "args": {m.unit or "value": round9(float(v))}}
                for t, v in zip(m.t.data, m.series.data, strict=True)
            ]
    for timeline in (p for p in frame.panels if isinstance(p, Gantt)):
        events += _slices(timeline, us)
    for panel in (p for p in frame.panels if isinstance(p, Text)):
        events += [
            {"ph": "i", "s": "p", "pid": 1, "tid": 1, "name": line, "ts": t * us} for t, line in story_lines(panel)
        ]
    other = {"tick": frame.clock.unit if frame.clock else "", "state": state, "made_by": made}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}, separators=(",", ":"))


def _slices(panel: Gantt, us: int) -> Iterator[dict[str, Any]]:
    """Process 2, a row a thread; who waits overlaps others and is asynchronous."""
    yield {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": panel.title}}
    columns = (panel.row, panel.owner, panel.type, panel.start, panel.end, panel.tokens)
    for number, (row, owner, kind, start, end, tokens) in enumerate(zip(*(c.data for c in columns), strict=True)):
        name, at = panel.types[int(kind)], round(start * us)
        what = {"name": f"{name} {owner}", "cat": name, "pid": 2, "tid": row + 1}
        if name in ("waiting", "preempted", "transfer"):
            yield {"ph": "b", "id": number, "ts": at, **what}
            yield {"ph": "e", "id": number, "ts": round(end * us), **what}
        else:
            args = {"request": owner, "tokens": tokens}
            yield {"ph": "X", "ts": at, "dur": max(round(end * us) - at, 1), "args": args, **what}


def story_lines(panel: Text) -> Iterator[tuple[int, str]]:
    """The (tick, sentence) pairs of a story."""
    columns = [panel.t, panel.template, panel.a0, panel.a1, panel.a2, panel.a3]
    if any(c is None for c in columns):
        return
    for t, template, *args in zip(*(c.data for c in columns if c is not None), strict=True):
        yield t, panel.templates[template].format(*args, **_named(panel.names, args))


def _named(names: Sequence[str], args: Sequence[int]) -> dict[str, str]:
    return {f"n{i}": names[a] for i, a in enumerate(args) if 0 <= a < len(names)}


def _metrics(frame: Frame) -> list[Metric]:
    return [p for p in frame.panels if isinstance(p, Metric)]


def _number(value: Any) -> Any:
    return round9(value) if isinstance(value, float) else value


FORMATS: dict[str, tuple[str, str, Callable[[Frame, State, str], str]]] = {
    "csv": (".csv", "text/csv", to_csv),
    "json": (".json", "application/json", to_json),
    "perfetto": ("-trace.json", "application/json", to_perfetto),
}
