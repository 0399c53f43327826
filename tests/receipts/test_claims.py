"""From an id in prose to a number that is backed, or a refusal that names the claim."""

from __future__ import annotations

import pytest
from small_receipts import Folder

from servelab.receipt import attest, load_all, resolve
from servelab.receipt.claims import number


def test_a_claim_carries_its_evidence(folder: Folder) -> None:
    claim = resolve("squares.area", load_all(folder.path), attest.subjects(folder.path))
    assert (claim.value, claim.unit, claim.n, claim.ci95, claim.evidence) == (144, "cells", 1, None, "derived")
    assert claim.receipt == "squares/core-2026-11-30.json"
    assert claim.text() == "144 cells" and claim.interval() == ""


def test_an_interval_is_printed(folder: Folder) -> None:
    claim = resolve("timing.alloc_ns_median", load_all(folder.path))
    assert claim.text() == "205 ns" and claim.interval() == "95 % interval 190 to 250 ns"


@pytest.mark.parametrize(
    ("value", "unit", "digits", "text"),
    [
        (105710, "references", None, "105,710 references"),
        (0.543772037851109, "%", None, "0.544 %"),
        (36.6412478336222, "%", None, "36.6 %"),
        (36.6412478336222, "%", 2, "36.64 %"),
        (2.625, "×", 1, "2.6×"),
        (12345.678, "", None, "12,346"),
        (0.0, "s", None, "0 s"),
        (-3, "points", None, "−3 points"),
        (204, "blocks", 1, "204.0 blocks"),
    ],
)
def test_numbers_as_prose_prints_them(value: float, unit: str, digits: int | None, text: str) -> None:
    assert number(value, unit, digits) == text


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("squares", r"claim 'squares' is not <kind>\.<metric>"),
        ("cubes.volume", r"claim 'cubes\.volume': no receipt of kind 'cubes'; run generate/cubes\.py"),
        (
            "squares.volume",
            r"claim 'squares\.volume' is not bound by squares/core-2026-11-30\.json; it binds squares\.area",
        ),
        ("sides.first", r"claim 'sides\.first' is not bound by sides/core-2026-11-30\.json; it binds sides\.total"),
    ],
)
def test_unbound(folder: Folder, claim: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        resolve(claim, load_all(folder.path))


def test_changed_receipt(folder: Folder) -> None:
    folder.edit("forecast", lambda r: r["metrics"]["speed"].update(value=99))
    with pytest.raises(
        ValueError, match=r"claim 'forecast\.speed': forecast/core-2026-11-30\.json is not the one that was attested"
    ):
        resolve("forecast.speed", load_all(folder.path), attest.subjects(folder.path))
    with pytest.raises(ValueError, match="is not attested"):
        resolve("forecast.speed", load_all(folder.path), {})


@pytest.mark.parametrize("value", [143, 145])
def test_broken_tolerance(folder: Folder, value: int) -> None:
    folder.edit("squares", lambda r: r["metrics"]["area"].update(value=value))
    receipts = load_all(folder.path)
    with pytest.raises(
        ValueError, match=rf"claim 'squares\.area': squares\.area is {value}, outside its tolerance 144 to 144"
    ):
        resolve("squares.area", receipts)
    assert resolve("squares.diagonal", receipts).text(1) == "17.0 cells"
