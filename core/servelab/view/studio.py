"""What a studio module offers, found by name: `studios/<name>/view.py`.

TITLE, SENTENCE (what to see), SUMMARY (one line for the list), NEEDS (Pyodide packages beyond the core, e.g. "numpy"),
RECEIPTS (kinds that its view reads: its page fetches those), State, PRESETS (first = what the page opens with),
`view(state, receipts) -> Frame`, and where they make sense:
`rest(state, receipts) -> panels` in the area "rest", which a page asks for once the settings rest; `drop(name, data,
receipts) -> Frame` for a dropped file, named by FILE, and DROPPED, the settings that put it to use.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from servelab.view.frame import Frame, Panel


@dataclass(frozen=True, slots=True)
class Preset:
    """A named state: `label` on the button, `note` says in one sentence what to look at; `beside`: the preset that is
    B next to it, if any."""

    label: str
    state: Any
    note: str
    beside: str = ""


class Studio(Protocol):
    """The names that a studio's view module defines."""

    TITLE: str
    SENTENCE: str
    SUMMARY: str
    NEEDS: tuple[str, ...]
    RECEIPTS: tuple[str, ...]
    State: type[Any]
    PRESETS: dict[str, Preset]

    def view(self, state: Any, receipts: Mapping[str, Any]) -> Frame: ...


def whole(room: Studio, state: Any, receipts: Mapping[str, Any]) -> Frame:
    """The Frame with what is computed last."""
    frame = room.view(state, receipts)
    return replace(frame, panels=(*frame.panels, *remaining(room, state, receipts)))


def remaining(room: Studio, state: Any, receipts: Mapping[str, Any]) -> tuple[Panel, ...]:
    """The panels that are computed last; none in most studios."""
    rest = getattr(room, "rest", None)
    return () if rest is None else tuple(rest(state, receipts))


def studio(name: str) -> Studio:
    """The studio module of that name; ValueError when the name is no studio's."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"studio {name!r} is no module name; use letters, digits and underscores, e.g. kv_desk")
    try:
        return cast(Studio, importlib.import_module(f"studios.{name}.view"))
    except ModuleNotFoundError as error:
        if error.name not in (f"studios.{name}", f"studios.{name}.view"):
            raise  # the studio is there, and needs a module that is not
        raise ValueError(f"there is no studio {name!r}; studios are the folders under studios/") from error
