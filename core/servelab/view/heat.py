"""A heat map to point at: a cell per row and column, coloured by level, with the facts behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from servelab.view.frame import Basis, Column, Panel


@dataclass(frozen=True, slots=True)
class Fact:
    """One number per cell, f32; NaN where there is none."""

    name: str
    unit: str
    digits: int
    values: Column


@dataclass(frozen=True, slots=True)
class Heat(Panel):
    """Cells row by row. `level`: i32, an index of `levels` (pale to dark), −1 told as `none`.

    `keys`: the settings that a row's and a column's name stand for, so that a cell can be chosen; `mark`: the chosen
    one's index or −1.
    """

    kind: ClassVar[str] = "heat"
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    level: Column
    levels: tuple[str, ...]
    none: str
    facts: tuple[Fact, ...]
    keys: tuple[str, str]
    basis: Basis
    caption: str = ""
    mark: int = -1
