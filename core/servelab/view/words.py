"""Words and tables: `text` (prose, optionally told along the clock) and `table` (a small static grid)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from servelab.view.frame import Basis, Column, Panel

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Text(Panel):
    """`body` paragraphs, and, with columns, a story: at `t[i]` the sentence `templates[template[i]]`.

    `{0}`…`{3}` in a template stand for the columns a0…a3 (i32), `{n0}`…`{n3}` for `names` at those columns, so that
    10^4 sentences cost 10^4 rows, not strings.
    """

    kind: ClassVar[str] = "text"
    body: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    t: Column | None = None
    template: Column | None = None
    a0: Column | None = None
    a1: Column | None = None
    a2: Column | None = None
    a3: Column | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table(Panel):
    """`columns` are (heading, unit); `rows` hold one cell per column; `mark` is the index of an emphasised row or −1.

    `basis` labels every number of the table; a column's `digits` sets its decimals. `claim`: the receipt that holds the
    numbers ("kv_waste"), shown as the table's receipt mark.
    """

    kind: ClassVar[str] = "table"
    columns: tuple[tuple[str, str], ...]
    digits: tuple[int, ...]
    rows: tuple[tuple[Cell, ...], ...]
    basis: Basis
    caption: str = ""
    mark: int = -1
    claim: str = ""
