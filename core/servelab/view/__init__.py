"""The view room: a studio's state in, a Frame of plain data out.

    State (one field per control) ──view(state, receipts)──▶ Frame(clock, panels) ──encode──▶ header + buffers

`control` reads a State class into controls and URL text into a State; `frame` holds the Frame and its wire form; each
panel kind has one small module; `export` turns a Frame into CSV and trace files; `bridge` is the only seam to a page.
"""

from servelab.view.control import Control, State, StateError, controls, from_query, to_query
from servelab.view.frame import Basis, Clock, Column, Frame, Panel, f32, i32, round9

__all__ = [
    "Basis",
    "Clock",
    "Column",
    "Control",
    "Frame",
    "Panel",
    "State",
    "StateError",
    "controls",
    "f32",
    "from_query",
    "i32",
    "round9",
    "to_query",
]
