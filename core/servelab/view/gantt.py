"""Who does what when: spans in rows along the frame's clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from servelab.view.frame import Column, Panel


@dataclass(frozen=True, slots=True)
class Gantt(Panel):
    """Spans of `rows` rows; a row is a `unit` ("slot", "request").

    Columns, a span each, in any order: `row`, `owner` (its request, for the hue), `type` (an index of `types`, whose
    names are colour tokens), `tokens` (i32), `start` and `end` (f32, ticks and parts of them). `legend`: the types that
    occur; `caption`: one sentence under the picture.

    Ticks in a span are the ends of iterations. These come in runs of equal ones, a run each: `begin` and `each` (one of
    them; f32, ticks), `times`; a NaN after those of a machine. `first`: a span's first run, −1 where it has no ticks.
    """

    kind: ClassVar[str] = "gantt"
    unit: str
    rows: int
    types: tuple[str, ...]
    legend: tuple[str, ...]
    caption: str
    row: Column
    owner: Column
    type: Column
    start: Column
    end: Column
    tokens: Column
    first: Column
    begin: Column
    each: Column
    times: Column
