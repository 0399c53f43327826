"""Checked access to parsed JSON: every function takes the value and its path, and refuses by naming both and what is
allowed."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from servelab.receipt.canonical import LIMIT
from servelab.receipt.numbers import Number


@dataclass(frozen=True, slots=True)
class Pattern:
    regex: str
    words: str


NAME = Pattern(r"[a-z][a-z0-9_]*", "lower-case letters, digits and underscores, a letter first")
FILE = Pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a file name without folders")
COMMIT = Pattern(r"[0-9a-f]{40}", "a full commit id of 40 hex digits")
SHA256 = Pattern(r"[0-9a-f]{64}", "64 lower-case hex digits")


def refuse(value: Any, path: str, allowed: str) -> NoReturn:
    shown = repr(value)
    raise ValueError(f"{path}: {shown if len(shown) <= 60 else shown[:57] + '…'} is not allowed; it must be {allowed}")


def mapping(value: Any, path: str) -> dict[str, Any]:
    return value if isinstance(value, dict) else refuse(value, path, "an object")


def array(value: Any, path: str) -> list[Any]:
    return value if isinstance(value, list) else refuse(value, path, "a list")


def keys(
    raw: Mapping[str, Any], path: str, required: Sequence[str], optional: Sequence[str] = (), why: str = ""
) -> None:
    """ValueError for the first key that is missing or not known."""
    for key in required:
        if key not in raw:
            raise ValueError(f"{path}.{key} is missing; the keys{why} are {', '.join(required)}")
    for key in raw:
        if key not in required and key not in optional:
            raise ValueError(f"{path}.{key} is not allowed; the keys{why} are {', '.join([*required, *optional])}")


def table(value: Any, path: str, name: Pattern, empty: bool = False) -> dict[str, Any]:
    """An object whose keys all fit `name`; at least one entry unless `empty`."""
    raw = mapping(value, path)
    for key in raw:
        match(key, f"{path} key", name)
    return raw if raw or empty else refuse(value, path, "an object with at least one entry")


def text(value: Any, path: str, empty: bool = False) -> str:
    if isinstance(value, str) and (empty or value.strip()):
        return value
    refuse(value, path, "a string" if empty else "a string that is not blank")


def match(value: Any, path: str, pattern: Pattern) -> str:
    if isinstance(value, str) and re.fullmatch(pattern.regex, value):
        return value
    refuse(value, path, pattern.words)


def one_of(value: Any, path: str, allowed: Sequence[str]) -> str:
    return (
        value if isinstance(value, str) and value in allowed else refuse(value, path, " or ".join(map(repr, allowed)))
    )


def number(value: Any, path: str) -> Number:
    """A finite number; integers within ±(2^53−1)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(value, path, "a number")
    if not (abs(value) <= LIMIT if isinstance(value, int) else math.isfinite(value)):
        refuse(value, path, "finite, and an integer within ±(2^53−1)")
    return value


def integer(value: Any, path: str, least: int = -LIMIT) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= LIMIT:
        return value
    refuse(value, path, f"an integer from {least} to 2^53−1")


def date(value: Any, path: str) -> str:
    try:
        if isinstance(value, str) and datetime.date.fromisoformat(value).isoformat() == value:
            return value
    except ValueError:
        pass
    refuse(value, path, "a date YYYY-MM-DD")


def sentences(value: Any, path: str, least: int = 0) -> tuple[str, ...]:
    items = tuple(text(v, f"{path}[{i}]") for i, v in enumerate(array(value, path)))
    return items if len(items) >= least else refuse(value, path, f"a list of at least {least} sentence")


def json_object(value: Any, path: str) -> dict[str, Any]:
    """An object of plain JSON data with finite numbers, at any depth."""
    return {k: _plain(v, f"{path}.{k}") for k, v in mapping(value, path).items()}


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return json_object(value, path)
    if isinstance(value, list):
        return [_plain(v, f"{path}[{i}]") for i, v in enumerate(value)]
    return value if value is None or isinstance(value, (bool, str)) else number(value, path)
