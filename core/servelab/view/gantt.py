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
