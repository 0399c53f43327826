"""Traces: how long every request is, when it came and which prompt blocks it shares, from the publishers' own files.

Two publishers, and the renamed columns that derived data sets use; plain or gzip, told apart by their first bytes:

    Azure LLM inference 2023, CSV     TIMESTAMP, ContextTokens, GeneratedTokens
                     renamed          arrival_s, prompt_tokens, output_tokens
    Mooncake FAST'25, JSON lines      timestamp (ms), input_length, output_length, hash_ids
                     renamed          arrival_ms, prompt_tokens, output_tokens, hash_ids

A CSV of lengths alone (prompt_tokens, output_tokens) has no clock. Extra columns are ignored. Time is an integer number
of nanoseconds since the first arrival, so that seven-decimal time stamps stay exact and no rounding decides an order.
Block k of a prompt covers its tokens 512·k … 512·k+511; equal hash ids mean equal blocks after equal prefixes.

Sources: github.com/Azure/AzurePublicDataset, github.com/kvcache-ai/Mooncake (FAST25-release).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from servelab.kv.limits import MAX_TOKENS, short
from servelab.kv.source import MAX_NESTING, load, text_of, too_deep

HASH_BLOCK = 512
"""Tokens per hash id in Mooncake's traces."""

MAX_ARRIVAL_NS = 2**62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests in order of arrival, one tuple per column.

    `name` is the file's name, `sha256` the digest of its bytes as given. `arrival_ns` is None without a clock,
    `hash_ids` None without block hashes. `reordered` counts rows that came before the row above them in the file.
    """

    name: str
    sha256: str
    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    arrival_ns: tuple[int, ...] | None = None
    hash_ids: tuple[tuple[int, ...], ...] | None = None
    reordered: int = 0

    @property
    def requests(self) -> int:
        return len(self.prompt_tokens)


@dataclass(frozen=True, slots=True)
class Layout:
    """One accepted set of columns; `clock` turns an arrival into nanoseconds."""

    prompt: str
    output: str
    arrival: str = ""
    clock: Callable[[Any], int] = int
    hashes: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(c for c in (self.arrival, self.prompt, self.output, self.hashes) if c)


def iso_ns(text: str) -> int:
    """Nanoseconds since 1970 of an ISO time stamp with up to nine decimals; without a zone it is UTC."""
    match = _ISO.fullmatch(text)
    try:
        if not match:
            raise ValueError
        day, time, decimals, zone = match.groups()
        moment = datetime.fromisoformat(f"{day}T{time}{zone or '+00:00'}") - _EPOCH
    except ValueError:
        raise ValueError("is no time stamp; write 2023-11-16 18:15:46.6805900") from None
    return (moment.days * 86_400 + moment.seconds) * 10**9 + int((decimals or "0").ljust(9, "0"))


def seconds_ns(text: str) -> int:
    """Nanoseconds of decimal seconds from 0; decimals beyond the ninth are rounded half to even."""
    try:
        value = Decimal(text) * 10**9
        if 0 <= value < MAX_ARRIVAL_NS:
            return int(value.to_integral_value())
    except ArithmeticError:
        pass
    raise ValueError(f"is outside 0 to {MAX_ARRIVAL_NS // 10**9:,} seconds; write seconds since the first request")


def millis_ns(value: object) -> int:
    """Nanoseconds of whole milliseconds from 0."""
    if type(value) is int and 0 <= value < MAX_ARRIVAL_NS // 10**6:
        return value * 10**6
    raise ValueError(f"is outside 0 to {MAX_ARRIVAL_NS // 10**6:,}; write whole milliseconds since the first request")


CSV_LAYOUTS = (
    Layout("ContextTokens", "GeneratedTokens", "TIMESTAMP", iso_ns),
    Layout("prompt_tokens", "output_tokens", "arrival_s", seconds_ns),
    Layout("prompt_tokens", "output_tokens"),
)
JSON_LAYOUTS = (
    Layout("input_length", "output_length", "timestamp", millis_ns, "hash_ids"),
    Layout("prompt_tokens", "output_tokens", "arrival_ms", millis_ns, "hash_ids"),
    Layout("input_length", "output_length", "timestamp", millis_ns),
    Layout("prompt_tokens", "output_tokens", "arrival_ms", millis_ns),
)


def read(source: bytes | str | Path, name: str = "", progress: Progress | None = None) -> Trace:
    """The Trace in a file (path) or in its bytes (then give its `name`).

    Raises ValueError naming the file, the line, the value, what is allowed and the fix.
    """
    data = source if isinstance(source, bytes) else load(Path(source))
    name = name or ("trace" if isinstance(source, bytes) else Path(source).name)
    try:
        text = text_of(data)
        rows = (_json_rows if text.lstrip()[:1] in "{[" else _csv_rows)(text, progress or (lambda share: None))
        return _trace(name, hashlib.sha256(data).hexdigest(), *rows)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


Row = tuple[int, int, int, tuple[int, ...] | None]
"""arrival_ns, prompt tokens, output tokens, hash ids."""


def _csv_rows(text: str, progress: Progress) -> tuple[Layout, list[Row]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    total = text.count("\n") + 1
    rows: list[Row] = []
    try:
        header = [column.strip() for column in next(reader)]
        layout = _layout(CSV_LAYOUTS, header, "CSV columns")
        where = [header.index(column) for column in layout.columns]
        for fields in reader:
            if not fields:
                continue
            if len(fields) <= max(where):
                raise ValueError(f"{len(fields)} fields, the header has {len(header)}; complete the row or drop it")
            *arrival, prompt, output = (fields[i].strip() for i in where)
            start = _arrival(layout, arrival[0]) if arrival else 0
            rows.append((start, _tokens(layout.prompt, prompt), _tokens(layout.output, output), None))
            if not reader.line_num & 4095:
                progress(reader.line_num / total)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None
    return layout, rows


def _json_rows(text: str, progress: Progress) -> tuple[Layout, list[Row]]:
    lines = text.split("\n")
    layout = None
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            record = _object(line)
            layout = layout or _layout(JSON_LAYOUTS, list(record), "JSON keys")
            rows.append(_json_row(layout, record))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not number & 4095:
            progress(number / len(lines))
    return layout or JSON_LAYOUTS[0], rows


def _object(line: str) -> dict[str, Any]:
    if too_deep(line):
        raise ValueError(f"JSON nested deeper than {MAX_NESTING} levels; write one flat object per line")
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{short(line.strip())} is no JSON ({error}); write one object per line") from None
    except ValueError:
        raise ValueError(f"{short(line.strip())} has a number of over 4,000 digits; repair or drop the line") from None
    if not isinstance(record, dict):
        raise ValueError(f"{short(line.strip())} is no JSON object; write one object per line, no list around them")
    return record


def _json_row(layout: Layout, record: dict[str, Any]) -> Row:
    try:
        arrival, prompt, output = record[layout.arrival], record[layout.prompt], record[layout.output]
        ids = record[layout.hashes] if layout.hashes else None
    except KeyError as missing:
        raise ValueError(f"{missing.args[0]} is missing; every line needs {', '.join(layout.columns)}") from None
    prompt = _tokens(layout.prompt, prompt)
    hashes = _hashes(ids, prompt) if layout.hashes else None
    return _arrival(layout, arrival), prompt, _tokens(layout.output, output), hashes


def _layout(layouts: tuple[Layout, ...], found: list[str], what: str) -> Layout:
    for layout in layouts:
        if set(layout.columns) <= set(found):
            return layout
    accepted = " | ".join(", ".join(layout.columns) for layout in layouts)
    raise ValueError(f"{what} {short(', '.join(found))} are not known; rename them to one of: {accepted}")


def _arrival(layout: Layout, value: Any) -> int:
    try:
        return layout.clock(value)
    except ValueError as error:
        raise ValueError(f"{layout.arrival}={short(value)} {error}") from None


def _tokens(column: str, value: Any) -> int:
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if type(value) is int and 1 <= value <= MAX_TOKENS:
        return value
    raise ValueError(f"{column}={short(value)} is outside 1 to {MAX_TOKENS:,} whole tokens; repair or drop the row")


def _hashes(value: Any, prompt: int) -> tuple[int, ...]:
    most = -(-prompt // HASH_BLOCK)
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise ValueError(f"hash_ids={short(value)} is no list of whole numbers; give one per {HASH_BLOCK}-token block")
    if not prompt // HASH_BLOCK <= len(value) <= most:
        raise ValueError(
            f"hash_ids has {len(value)} ids for {prompt:,} prompt tokens, allowed {prompt // HASH_BLOCK} to {most}; "
            f"give one id per {HASH_BLOCK}-token block"
        )
    if value and not 0 <= min(value) <= max(value) < 2**63:
        raise ValueError(f"hash_ids has {short(min(value))} … {short(max(value))}, allowed are 0 to 2^63 − 1; renumber")
    return tuple(value)


def _trace(name: str, sha256: str, layout: Layout, rows: list[Row]) -> Trace:
    if not rows:
        raise ValueError("the file holds 0 requests below its header; give a trace of at least 1")
    reordered = sum(later[0] < earlier[0] for earlier, later in pairwise(rows))
    if reordered:
        rows.sort(key=lambda row: row[0])
    arrival, prompt, output, hashes = zip(*rows, strict=True)
    clock = tuple(ns - arrival[0] for ns in arrival) if layout.arrival else None
    return Trace(name, sha256, prompt, output, clock, hashes if layout.hashes else None, reordered)
