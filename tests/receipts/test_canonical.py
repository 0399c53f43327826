"""Golden vectors of RFC 8785 (files in tests/golden/rfc8785), and bytes that are no canonical JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from servelab.receipt.canonical import canonical, check_canonical, parse, sha256

GOLDEN = Path(__file__).parent.parent / "golden" / "rfc8785"
NAMES = sorted(p.name.removesuffix(".in.json") for p in GOLDEN.glob("*.in.json"))


def test_there_are_golden_vectors() -> None:
    assert NAMES == ["nested", "numbers", "sorting", "strings"]


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    source, wanted = (GOLDEN / f"{name}.{side}.json" for side in ("in", "out"))
    assert canonical(parse(source.read_bytes())) == wanted.read_bytes()
    check_canonical(wanted.read_bytes())
    with pytest.raises(ValueError, match="not canonical JSON at byte"):
        check_canonical(source.read_bytes())


def test_hash() -> None:
    """FIPS 180-4's own example."""
    assert sha256(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a":1}\n', r"at byte 7: found b'\\n'"),
        (b'{"b":1,"a":2}', r"at byte 2: found b'b"),
        (b'{"a":1.0}', r"at byte 6: found b'\.0"),
        (b'{"a":1,"a":2}', "'a' stands twice"),
        (b'{"a":NaN}', "NaN is no JSON number"),
        (b"[" * 200_000, "nested deeper than 64 levels"),
        (b"[" * 600 + b"]" * 600, "nested deeper than 64 levels"),
        (b'{"a":' + b"9" * 5000 + b"}", "integer of 5,000 digits, allowed are 1 to 400; restore"),
        (b'{"a":-Infinity}', "-Infinity is no JSON number"),
        (b'{"a":1', "not JSON at line 1, column 7"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
    ],
)
def test_says_where_bytes_are_not_canonical(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_canonical(data)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, -(2**53)])
def test_refuses_what_json_cannot_hold(value: float) -> None:
    with pytest.raises(ValueError, match="no canonical JSON"):
        canonical({"x": value})
