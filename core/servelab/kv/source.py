"""Files as text: plain or gzip, told apart by their first bytes, never larger than a tab can hold."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from pathlib import Path

MAX_BYTES = 512 * 2**20
"""Largest unpacked trace, bytes."""

MAX_NESTING = 64
"""Levels of JSON; a browser's stack ends long before Python's own limit would be noticed."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[{\]}]")

_OTHER = {
    b"PK\x03\x04": "a zip archive; unpack it",
    b"\xfd7zXZ": "an xz file; unpack it",
    b"BZh": "a bzip2 file; unpack it",
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it",
    b"PAR1": "a Parquet file; export it as CSV",
}


def load(path: Path) -> bytes:
    """A file's bytes; ValueError that names it when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {(error.strerror or 'unreadable').lower()}; give the path of a trace file") from None


def too_deep(text: str) -> bool:
    """Whether brackets outside strings open more than MAX_NESTING levels of JSON."""
    if text.count("[") + text.count("{") <= MAX_NESTING:
        return False
    depth = 0
    for mark in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if mark in "[{" else -1
        if depth > MAX_NESTING:
            return True
    return False


def _unpack(data: bytes) -> bytes:
    for magic, what in _OTHER.items():
        if data.startswith(magic):
            raise ValueError(f"this is {what}; plain text and gzip are read")
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"the gzip is cut short or damaged ({error}); download it again") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"over {MAX_BYTES:,} bytes unpacked, allowed are 1 to {MAX_BYTES:,}; cut the trace into parts")
    return data


def text_of(data: bytes) -> str:
    """The text in plain or gzip bytes; ValueError for what is neither, too large, cut short or empty."""
    data = _unpack(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line}: byte 0x{data[error.start]:02x} is no UTF-8 text; give CSV or JSON lines, plain or gzip"
        ) from None
    if not text.strip():
        raise ValueError("the file holds 0 requests; give a trace of at least 1")
    return text
