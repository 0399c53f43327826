"""A table to choose from: sorted by any column, filtered by words, rows pinned to compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from servelab.view.words import Table


@dataclass(frozen=True, slots=True)
class Matrix(Table):
    """A Table whose row i is chosen by the settings `states[i]`."""

    kind: ClassVar[str] = "matrix"
    states: tuple[Mapping[str, str], ...] = ()
