"""A Frame is all that a page draws: a clock and a list of panels, as plain data.

Wire form: one JSON header (keys sorted, no spaces) in which a column is `{"$": index, "n": length, "type": "i32"}` (or
"f32"), and the columns' little-endian bytes in that order. Numbers are rounded to 9 significant digits here and nowhere
else, so that the last bits of two C libraries never reach a page: CPython and Pyodide give the same bytes.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

Basis = Literal["measured", "derived", "replayed", "model"]
"""Where a number comes from; a page prints it beside every number."""

Area = Literal["tiles", "stage", "side", "below", "rest"]
"""Where a panel sits: number tiles above, the picture, beside it, under the fold, or below that and computed last."""


def round9(x: float) -> float:
    """`x` at 9 significant digits; ValueError for NaN and infinities, which JSON cannot carry."""
    if not math.isfinite(x):
        raise ValueError(f"a frame holds finite numbers only, got {x}; use None for 'no value'")
    return float(f"{x:.9g}")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a large panel: `type` is i32 or f32, `data` a packed array of that type."""

    type: Literal["i32", "f32"]
    data: array[Any]

    def little_endian(self) -> bytes:
        if sys.byteorder == "little":
            return self.data.tobytes()
        swapped = array(self.data.typecode, self.data)
        swapped.byteswap()
        return swapped.tobytes()


def i32(values: Iterable[int]) -> Column:
    """Pack integers in ±2^31; OverflowError names nothing, so callers check ranges at their own boundary."""
    return Column("i32", array("i", values))


def f32(values: Iterable[float]) -> Column:
    """Pack reals as float32 (7 significant digits; NaN is allowed and draws a gap)."""
    return Column("f32", array("f", values))


@dataclass(frozen=True, slots=True)
class Clock:
    """The integer clock that every panel of a frame shares.

    `end` is the last tick, `marks` the ticks at which something happens (sorted, unique; step keys move along them),
    `unit` names a tick ("tokens", "steps", "ps"), `start` is where a page opens.
    """

    end: int
    unit: str
    marks: Column
    start: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """Base of all panels: `kind` picks the shared drawing module, `id` is unique in its frame."""

    kind: ClassVar[str]
    id: str
    title: str
    area: Area


@dataclass(frozen=True, slots=True)
class Frame:
    """A clock and panels in reading order; `headline` is the one sentence a screen reader hears when a frame is new."""

    headline: str
    clock: Clock | None
    panels: tuple[Panel, ...]

    def encode(self) -> tuple[str, list[bytes]]:
        """The wire form: (header JSON, column bytes in the order of their `$` index)."""
        buffers: list[bytes] = []
        header = {
            "clock": _plain(self.clock, buffers),
            "headline": self.headline,
            "panels": [{"kind": p.kind, **_plain(p, buffers)} for p in self.panels],
        }
        return json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False), buffers

    def to_bytes(self) -> bytes:
        """Header, a zero byte, then every buffer: what the byte-identity test compares."""
        header, buffers = self.encode()
        return header.encode() + b"\0" + b"".join(buffers)


def _plain(value: Any, buffers: list[bytes]) -> Any:
    if isinstance(value, Column):
        buffers.append(value.little_endian())
        return {"$": len(buffers) - 1, "n": len(value.data), "type": value.type}
    if isinstance(value, float):
        return round9(value)
    if isinstance(value, dict):
        return {str(k): _plain(v, buffers) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, buffers) for v in value]
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _plain(getattr(value, f.name), buffers) for f in fields(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"a frame holds plain data, got {type(value).__name__}: {value!r}")
