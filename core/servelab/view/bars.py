"""Stacked bars, one a row, beside a limit that they stay under or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from servelab.view.frame import Basis, Panel


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: its name, the length of each part, the words at its end, and the settings that choose it."""

    name: str
    values: tuple[float, ...]
    end: str
    state: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bars(Panel):
    """`parts` are (name, colour token) in the order of a row's values; `limit` is drawn as a line and told as
    `limit_name`; `mark` is the index of the chosen row or −1."""

    kind: ClassVar[str] = "bars"
    parts: tuple[tuple[str, str], ...]
    rows: tuple[Bar, ...]
    unit: str
    digits: int
    limit: float
    limit_name: str
    basis: Basis
    caption: str = ""
    mark: int = -1

    @property
    def longest(self) -> float:
        """What the full width stands for."""
        return max(self.limit, *(sum(row.values) for row in self.rows)) * 1.02
