"""Number tiles. A tile shows `value`, or, when it has a series, the series at the clock's current tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from servelab.view.frame import Basis, Column, Panel


@dataclass(frozen=True, slots=True)
class Metric(Panel):
    """One number with unit and basis.

    `t`, `series`: i32 ticks and f32 values; between two ticks the value is linear when `linear`, else it holds.
    `digits`: decimals shown. `claim`: a receipt metric ("kv_pages.shared_blocks") that the value at the end must equal,
    shown as the tile's receipt mark. `how` explains a number without one: (formula, its value), then (term, value)
    lines. `tone` names the colour of the thing counted ("shared", "wasted", …).
    """

    kind: ClassVar[str] = "metric"
    value: float | int | None
    unit: str
    basis: Basis
    note: str = ""
    digits: int = 0
    tone: str = ""
    claim: str = ""
    t: Column | None = None
    series: Column | None = None
    linear: bool = False
    how: tuple[tuple[str, str], ...] = ()
