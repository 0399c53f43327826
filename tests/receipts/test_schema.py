"""The reader and the published JSON Schema accept the same receipts, and the reader says what is wrong with the
others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from servelab.receipt import read, schema
from servelab.receipt.canonical import sha256
from servelab.receipt.schema import COMMON, DUTY, EVIDENCE, MAY, SCHEMA

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "receipts" / "schema" / "receipt-1.json"
PUBLISHED = json.loads(FILE.read_text())
VALIDATOR = jsonschema.Draft202012Validator(PUBLISHED)
COMMITTED = sorted(p for p in (ROOT / "receipts").glob("*/*.json") if p.parent.name not in ("schema", "keys"))

Example = Callable[[str], dict[str, Any]]

GONE = object()

# (evidence, where, value, what the reader says, whether JSON Schema can see it too)
WRONG: list[tuple[str, str, Any, str, bool]] = [
    (
        "derived",
        "schema",
        "urn:servelab:receipt:2",
        r"schema: 'urn:servelab:receipt:2' is not allowed; it must be 'urn:",
        True,
    ),
    ("derived", "evidence", "guessed", r"evidence: 'guessed' is not allowed; it must be 'derived' or 'replayed'", True),
    ("derived", "kind", "kv-pages", r"kind: 'kv-pages' is not allowed; it must be lower-case letters", True),
    ("derived", "kind", GONE, r"receipt\.kind is missing; the keys of a derived receipt are", True),
    ("derived", "colour", "red", r"receipt\.colour is not allowed; the keys of a derived receipt are", True),
    ("derived", "command", "  ", r"command: '  ' is not allowed; it must be a string that is not blank", True),
    ("derived", "seed", 1.5, r"seed: 1\.5 is not allowed; it must be an integer", True),
    ("derived", "seed", True, r"seed: True is not allowed", True),
    ("derived", "seed", 2**53, r"seed: 9007199254740992 is not allowed", True),
    ("derived", "commit", "abc123", r"commit: 'abc123' is not allowed; it must be a full commit id", True),
    ("derived", "date", "30.11.2026", r"date: '30\.11\.2026' is not allowed; it must be a date YYYY-MM-DD", True),
    ("derived", "date", "2026-02-30", r"date: '2026-02-30' is not allowed", False),
    ("derived", "environment", {}, r"environment: \{\} is not allowed; it must be an object with at least one", True),
    ("derived", "environment.cpu", 8, r"environment\.cpu: 8 is not allowed", True),
    ("derived", "data", [{"name": "a.csv", "sha256": "0" * 64}], r"a derived receipt needs no outside data", True),
    ("derived", "samples", {"x": [1]}, r"receipt\.samples is not allowed", True),
    ("derived", "assumptions", ["None."], r"receipt\.assumptions is not allowed", True),
    ("derived", "metrics", {}, r"metrics: \{\} is not allowed", True),
    ("derived", "metrics.area.value", "144", r"metrics\.area\.value: '144' is not allowed; it must be a number", True),
    ("derived", "metrics.area.value", True, r"metrics\.area\.value: True is not allowed", True),
    (
        "derived",
        "metrics.area.value",
        float("inf"),
        r"metrics\.area\.value: inf is not allowed; it must be finite",
        False,
    ),
    ("derived", "metrics.area.unit", GONE, r"metrics\.area\.unit is missing; the keys are value, unit, n, ci95", True),
    ("derived", "metrics.area.n", 0, r"metrics\.area\.n: 0 is not allowed; it must be an integer from 1", True),
    (
        "derived",
        "metrics.area.ci95",
        [1, 2, 3],
        r"metrics\.area\.ci95: 3 numbers are not allowed; use \[low, high\]",
        True,
    ),
    (
        "derived",
        "metrics.area.ci95",
        [145, 150],
        r"metrics\.area\.ci95: \[145, 150\] does not hold the value 144",
        False,
    ),
    ("derived", "claims", ["squares.volume"], r"claims\[0\]: 'squares\.volume' is no metric of this receipt", False),
    ("derived", "claims", ["sides.area"], r"claims\[0\]: 'sides\.area' is no metric of this receipt", False),
    ("derived", "claims", "squares.area", r"claims: 'squares\.area' is not allowed; it must be a list", True),
    ("derived", "tolerance", {"volume": {"min": 1, "max": 2}}, r"tolerance\.volume: no such metric", False),
    ("derived", "tolerance.area", {"min": 2, "max": 1}, r"tolerance\.area: min 2 is above max 1", False),
    ("derived", "tolerance.area", {"equals": 144}, r"tolerance\.area\.min is missing", True),
    ("derived", "losses", [""], r"losses\[0\]: '' is not allowed", True),
    ("derived", "statistic", {"deep": [{"x": float("nan")}]}, r"statistic\.deep\[0\]\.x: nan is not allowed", False),
    ("replayed", "data", [], r"data: \[\] is not allowed; a replayed receipt names at least one file", True),
    ("replayed", "data", {"name": "sides.txt"}, r"data: .* is not allowed; it must be a list", True),
    (
        "replayed",
        "data",
        [{"name": "a/b.csv", "sha256": "0" * 64}],
        r"data\[0\]\.name: 'a/b\.csv' is not allowed",
        True,
    ),
    (
        "replayed",
        "data",
        [{"name": "a.csv", "sha256": "0" * 63}],
        r"data\[0\]\.sha256: .* 64 lower-case hex digits",
        True,
    ),
    ("replayed", "statistic", GONE, r"receipt\.statistic is missing; the keys of a replayed receipt", True),
    ("measured", "samples", GONE, r"receipt\.samples is missing; the keys of a measured receipt", True),
    ("measured", "samples.alloc_ns", [], r"samples\.alloc_ns: \[\] is not allowed; keep at least one raw sample", True),
    ("measured", "samples.alloc_ns", [1, "2"], r"samples\.alloc_ns\[1\]: '2' is not allowed", True),
    ("measured", "samples.alloc_ns", [210, 190, 200, 251], r"metrics\.alloc_ns_p90\.value: 238 is not the p90", False),
    (
        "measured",
        "metrics.alloc_ns_median.value",
        204,
        r"alloc_ns_median\.value: 204 is not the median .* which is 205",
        False,
    ),
    (
        "measured",
        "metrics.alloc_ns_median.n",
        5,
        r"alloc_ns_median\.n: 5 is not its number of samples, which is 4",
        False,
    ),
    (
        "measured",
        "environment",
        {"cpu": "any"},
        r"environment\.machine is missing; a measured receipt names the CPU or GPU",
        True,
    ),
    ("model", "assumptions", GONE, r"receipt\.assumptions is missing", True),
    ("model", "assumptions", [], r"assumptions: \[\] is not allowed; it must be a list of at least 1 sentence", True),
    ("model", "samples", {"x": [1]}, r"receipt\.samples is not allowed", True),
]


def put(value: dict[str, Any], where: str, new: Any) -> dict[str, Any]:
    *parents, last = where.split(".")
    inner = value
    for key in parents:
        inner = inner[key]
    inner.pop(last, None)
    if new is not GONE:
        inner[last] = new
    return value


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_examples_round_trip(example: Example, evidence: str) -> None:
    value = example(evidence)
    receipt = read(value)
    assert receipt.to_json() == value
    assert read(receipt.to_json()) == receipt
    VALIDATOR.validate(value)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_committed_receipts_fit_both(path: Path) -> None:
    value = json.loads(path.read_bytes())
    VALIDATOR.validate(value)
    assert read(value).to_json() == value


@pytest.mark.parametrize(("evidence", "where", "new", "says", "seen"), WRONG)
def test_wrong_receipts_are_refused(
    example: Example, evidence: str, where: str, new: Any, says: str, seen: bool
) -> None:
    value = put(example(evidence), where, new)
    with pytest.raises(ValueError, match=says):
        read(value)
    assert VALIDATOR.is_valid(value) is not seen


def test_no_object() -> None:
    with pytest.raises(ValueError, match=r"receipt: \[\] is not allowed; it must be an object"):
        read([])


def test_published_schema_lists_the_readers_keys() -> None:
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    assert PUBLISHED["$id"] == SCHEMA and sha256(FILE.read_bytes()) == schema.PUBLISHED
    assert set(PUBLISHED["required"]) == set(COMMON)
    optional = {key for table in (DUTY, MAY) for names in table.values() for key in names}
    assert set(PUBLISHED["properties"]) == set(COMMON) | optional
    assert tuple(PUBLISHED["properties"]["evidence"]["enum"]) == EVIDENCE
