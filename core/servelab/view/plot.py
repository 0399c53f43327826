"""A Plotly figure as plain data. Colours are token names ("$decode"), which the page replaces by its theme's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from servelab.view.frame import Basis, Panel


@dataclass(frozen=True, slots=True)
class Plot(Panel):
    """`traces`: Plotly traces whose x and y may be Columns; `x`, `y`: axis titles with units; `log`: axes drawn in log.

    `cursor`: the page draws the clock's tick as a vertical line. `alt`: the sentence that stands for the picture.
    `claim`: the receipt that holds the numbers ("kv_waste"), shown as the plot's receipt mark.
    """

    kind: ClassVar[str] = "plot"
    traces: tuple[dict[str, Any], ...]
    x: str
    y: str
    basis: Basis
    alt: str
    log: str = ""
    cursor: bool = False
    claim: str = ""
