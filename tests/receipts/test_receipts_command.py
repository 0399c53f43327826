"""`servelab receipts`: each command with and without --json; errors go to stderr with exit code 2 and name the fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_receipts import Folder
from typer.testing import CliRunner, Result

from servelab.receipt.command import app


def run(folder: Folder, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, [command, *arguments, "--receipts", str(folder.path)], env={"COLUMNS": "200"})


def plain(folder: Folder, command: str, *arguments: str) -> Any:
    return json.loads(run(folder, command, *arguments, "--json").stdout)


def test_list(folder: Folder) -> None:
    rows = plain(folder, "list")
    assert [(row["kind"], row["evidence"]) for row in rows] == [
        ("forecast", "model"),
        ("sides", "replayed"),
        ("squares", "derived"),
        ("timing", "measured"),
    ]
    assert "squares/core-2026-11-30.json" in run(folder, "list").stdout
    assert {row["system"] for row in rows} and "system" not in run(folder, "list").stdout
    narrow = CliRunner().invoke(app, ["list", "--receipts", str(folder.path)], env={"COLUMNS": "50"}).stdout
    assert "…" not in narrow, "names are folded, not cut"


@pytest.mark.parametrize(
    "name", ["squares", "squares.area", "squares/core-2026-11-30.json", "receipts/squares/core-2026-11-30.json"]
)
def test_show(folder: Folder, name: str) -> None:
    assert plain(folder, "show", name)["metrics"]["area"]["value"] == 144
    shown = run(folder, "show", name).stdout
    assert "144 cells" in shown and "A square is no rectangle." in shown and "no outside data" in shown


def test_show_what_is_not_there(folder: Folder) -> None:
    result = run(folder, "show", "cubes")
    assert result.exit_code == 2
    assert "there is no receipt 'cubes'; use one of forecast, sides, squares, timing" in result.stderr


def test_verify(folder: Folder) -> None:
    report = plain(folder, "verify")
    assert report["problems"] == [] and report["signed_by"] == ["example-2026-11"]
    row = {"metric": "area", "unit": "cells", "committed": 144, "recomputed": 144, "same": True}
    assert row in report["recomputed"]["squares/core-2026-11-30.json"]
    shown = run(folder, "verify")
    assert shown.exit_code == 0 and "4 receipts, 0 problems, 1 parts not checked" in shown.stdout
    (line,) = [line for line in shown.stdout.splitlines() if "sides/" in line]
    assert "2 of 2 numbers and the statistic" in line


def test_verify_names_what_is_wrong(folder: Folder, tmp_path: Path) -> None:
    folder.edit("squares", lambda r: r["metrics"]["area"].update(value=145))
    result = run(folder, "verify", "--data", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert "squares/core-2026-11-30.json: area: committed 145, recomputed 144 cells" in result.stdout
    assert "not checked: statistic from sides.txt: sides.txt is not under" in result.stdout
    assert {p["what"] for p in plain(folder, "verify")["problems"]} == {"tolerance", "recompute", "changed"}


def test_attest(folder: Folder, tmp_path: Path) -> None:
    (folder.path / "attestation.json").unlink()
    assert plain(folder, "attest", "--key", str(folder.key)) == {
        "attestation": str(folder.path / "attestation.json"),
        "key": "example-2026-11",
        "receipts": 4,
    }
    assert run(folder, "verify").exit_code == 0
    missing = run(folder, "attest", "--key", str(tmp_path / "nowhere.pem"))
    assert missing.exit_code == 2 and "servelab receipts keygen --out FILE" in missing.stderr


def test_attest_signs_nothing_that_is_wrong(folder: Folder) -> None:
    before = (folder.path / "attestation.json").read_bytes()
    folder.edit("squares", lambda r: r["metrics"]["area"].update(value=145))
    result = run(folder, "attest", "--key", str(folder.key))
    assert (
        result.exit_code == 2 and "nothing signed" in result.stderr and "committed 145, recomputed 144" in result.stderr
    )
    assert (folder.path / "attestation.json").read_bytes() == before


def test_somebody_else_attests(folder: Folder, tmp_path: Path) -> None:
    """The recipe of CONTRIBUTING: a key of one's own, its public half beside the others, sign again."""
    key = tmp_path / "mine.pem"
    assert plain(folder, "keygen", "--out", str(key), "--label", "mine-2026-12")["label"] == "mine-2026-12"
    assert run(folder, "attest", "--key", str(key)).exit_code == 0
    assert plain(folder, "verify")["signed_by"] == ["mine-2026-12"]


def test_keygen_refuses_the_repository(folder: Folder) -> None:
    result = run(folder, "keygen", "--out", str(folder.path / "key.pem"))
    assert result.exit_code == 2 and "keep keys outside" in result.stderr


def test_no_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["list", "--receipts", str(tmp_path / "nowhere")])
    assert result.exit_code == 2 and "run from the repository root or pass --receipts DIR" in result.stderr
