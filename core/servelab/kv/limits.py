"""Limits: how this room refuses a value — the value, the allowed range and the fix in one sentence, nothing clipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

MAX_TOKENS = 100_000_000
"""Longest context or request, tokens."""

MAX_BLOCK = 65_536
"""Largest block, tokens."""


def within(name: str, value: int, low: int, high: int, fix: str) -> int:
    """`value` when it is a whole number in low…high; otherwise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name}={short(value)} is outside {low:,} to {high:,}; {fix}")
    return value


def whole(name: str, text: str, low: int, high: int, fix: str = "give a whole number") -> int:
    """The whole number that `text` writes, in low…high; otherwise ValueError."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 20:
        return within(name, int(text), low, high, fix)
    raise ValueError(f"{name}={short(text)} is no whole number from {low:,} to {high:,}; {fix}")


def entry(kind: str, name: str, table: Mapping[str, T]) -> T:
    """`table[name]`; ValueError with the names on offer when it is unknown."""
    if name not in table:
        raise ValueError(f"{kind}={short(name)} is unknown; use one of {', '.join(table)}")
    return table[name]


def beginning(kind: str, text: str, table: Mapping[str, T]) -> str:
    """The name in `table` that is `text` or alone begins with it, upper and lower case alike; otherwise ValueError."""
    lower = text.lower()
    found = [name for name in table if name.lower().startswith(lower)] if text else []
    exact = [name for name in found if name == text] or [name for name in found if name.lower() == lower]
    if len(exact or found) > 1:
        raise ValueError(f"{kind}={short(text)} begins more than one name; write one of {', '.join(found)}")
    name = (exact or found or [text])[0]
    entry(kind, name, table)
    return name


def short(value: object) -> str:
    """A value as a sentence shows it: its repr, at most 40 characters."""
    if isinstance(value, int) and value.bit_length() > 100:
        return f"{'-' if value < 0 else ''}10^{value.bit_length() * 0.30103:.0f} (about)"
    text = repr(value)
    return text if len(text) <= 40 else text[:38] + "…" + text[-1]
