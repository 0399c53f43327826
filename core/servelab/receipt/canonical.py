"""One spelling per value: RFC 8785 (JSON Canonicalization Scheme), so that a hash of bytes is a hash of the numbers.

Keys sorted by UTF-16 code units, no spaces, numbers as ECMAScript prints them, UTF-8, no newline at the end. Writing
needs the `rfc8785` package; reading and hashing work on bytes and need the standard library alone, as in a browser.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from servelab.kv.source import MAX_NESTING, too_deep

LIMIT = 2**53 - 1
"""Largest integer that every JSON reader keeps exactly; longer ones are written as strings."""


def sha256(data: bytes) -> str:
    """Lower-case hex SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value. ValueError for what JSON cannot hold: NaN, infinities, integers beyond
    ±(2^53−1)."""
    try:
        import rfc8785
    except ModuleNotFoundError as error:
        raise ValueError("writing canonical JSON needs the rfc8785 package; pip install rfc8785") from error
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise ValueError(
            f"no canonical JSON for this value: {error}; use finite numbers, strings, lists and objects"
        ) from error


def parse(data: bytes) -> Any:
    """The JSON value in `data`.

    ValueError for bytes that are no UTF-8 JSON, repeated keys, NaN and infinities, endless digits and deep nests.
    """
    try:
        text = data.decode("utf-8")
        if too_deep(text):
            raise ValueError(f"JSON nested deeper than {MAX_NESTING} levels; restore the file from git")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}; save the file as UTF-8 JSON") from error
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}; restore the file from git"
        ) from error


def check_canonical(data: bytes) -> None:
    """ValueError, with the place of the first difference, unless `data` is its own canonical form."""
    form = canonical(parse(data))
    if data == form:
        return
    at = next((i for i, (a, b) in enumerate(zip(data, form, strict=False)) if a != b), min(len(data), len(form)))
    found, wanted = data[at : at + 12], form[at : at + 12]
    raise ValueError(
        f"not canonical JSON at byte {at}: found {found!r}, RFC 8785 writes {wanted!r}; regenerate it, do not edit it"
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key {key!r} stands twice in one object; keep one of them")
        out[key] = value
    return out


def _integer(text: str) -> int | float:
    """Beyond ±(2^53−1) a JSON number is a double, whatever its spelling (RFC 7493, section 2.2)."""
    if len(text) > 400:
        raise ValueError(f"an integer of {len(text):,} digits, allowed are 1 to 400; restore the file from git")
    value = int(text)
    return value if abs(value) <= LIMIT else float(text)


def _finite(text: str) -> float:
    raise ValueError(f"{text} is no JSON number; use a finite number or null")
