"""The generators' shared writer: clean trees only, a date from SOURCE_DATE_EPOCH, no host names; and every script's
plan."""

from __future__ import annotations

import importlib
import json
import platform
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from small_receipts import TABLE, Folder

from servelab.receipt.canonical import check_canonical, sha256
from servelab.receipt.recompute import RECOMPUTE
from servelab.receipt.result import Files, Result
from servelab.receipt.schema import Metric
from servelab.receipt.store import load

GENERATE = Path(__file__).parent.parent.parent / "generate"
SCRIPTS = sorted(p.stem for p in GENERATE.glob("*.py") if "\nPLAN = " in p.read_text())


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GENERATE))
    return importlib.import_module("writer")


def measure(files: Files) -> Result:
    lengths = [int(line) for line in files["sides.txt"].split()]
    return Result(
        {"total": Metric(sum(lengths), "cells", 3), "third": Metric(sum(lengths) / 9, "", 3)}, {"sides": lengths}
    )


def generate(
    writer: ModuleType, folder: Folder, monkeypatch: pytest.MonkeyPatch, *arguments: str, run: Any = measure
) -> Path:
    """Run a script of kind `totals` in the folder's own repository."""
    plan = writer.Plan(
        "totals", "sums", "replayed", "replay", {"what": "sides"}, ["Only three."], {"total": (12, 12)}, ("sides.txt",)
    )
    data = folder.path.parent.parent / "data"
    monkeypatch.setattr(writer, "ROOT", folder.path.parent)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1798761599")
    monkeypatch.setattr(sys, "argv", ["totals.py", "--receipts", str(folder.path), "--data", str(data), *arguments])
    writer.main(plan, run)
    return folder.path / "totals" / "replay-2026-12-31.json"


def test_a_receipt_is_written(writer: ModuleType, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = generate(writer, folder, monkeypatch)
    check_canonical(path.read_bytes())
    receipt = load(path)
    assert receipt.metrics == {"total": Metric(12, "cells", 3), "third": Metric(1.33333333333333, "", 3)}
    assert receipt.claims == ("totals.total", "totals.third") and receipt.command == "python generate/totals.py"
    assert receipt.data[0].sha256 == sha256(TABLE) and receipt.statistic == {"sides": [3, 4, 5]}
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder.path, capture_output=True, text=True, check=True)
    assert receipt.commit == head.stdout.strip()
    before = path.read_bytes()
    assert generate(writer, folder, monkeypatch).read_bytes() == before
    private = (socket.gethostname(), platform.node(), str(folder.path))
    assert not any(word.encode() in before for word in private if word)


def test_a_tree_with_changes_is_refused(writer: ModuleType, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.path.parent / "code.py").write_text("x = 1\n")
    with pytest.raises(
        SystemExit, match=r"the tree has changes, e\.g\. '\?\? code\.py'; commit them first, or use --dry-run"
    ):
        generate(writer, folder, monkeypatch, run=lambda files: pytest.fail("it ran all the same"))
    assert not (folder.path / "totals").exists()


def test_help_comes_before_any_work(
    writer: ModuleType, folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        generate(writer, folder, monkeypatch, "--help", run=lambda files: pytest.fail("it ran all the same"))
    assert "--dry-run" in capsys.readouterr().out


def test_a_measuring_run_brings_its_samples(writer: ModuleType) -> None:
    units = {"a_ms": "ms", "b": "cells"}
    result, more = writer.measured({"a_ms": [3.0, 1.0, 2.0], "b": [4.0]}, units.__getitem__)
    assert result.metrics == {"a_ms_median": Metric(2.0, "ms", 3), "b_median": Metric(4.0, "cells", 1)}
    assert more == {"samples": {"a_ms": [3.0, 1.0, 2.0], "b": [4.0]}}


def test_the_samples_of_a_run_are_in_its_receipt(
    writer: ModuleType, folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = writer.Plan("pace", "legs", "measured", "cpu", {"what": "steps"}, ["Only two."], {"a_ms_median": (1, 2)})
    monkeypatch.setattr(writer, "ROOT", folder.path.parent)
    monkeypatch.setattr(sys, "argv", ["pace.py", "--dry-run"])
    writer.main(plan, lambda files: writer.measured({"a_ms": [1.0, 2.0]}, lambda name: "ms"))
    receipt = json.loads(capsys.readouterr().out)
    assert receipt["samples"] == {"a_ms": [1, 2]} and receipt["metrics"]["a_ms_median"]["value"] == 1.5


@pytest.mark.parametrize("script", ["build.py", *(f"generate/{name}.py" for name in SCRIPTS)])
def test_outside_the_environment_one_line_says_so(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-ES", str(GENERATE.parent / script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert ". .venv/bin/activate" in done.stderr


def test_without_playwright_one_line_says_so(writer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("playwright", "playwright.sync_api"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("bench_site", "site_speed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(SystemExit, match=r"^error: playwright\S* is missing; .*install -e '\.\[site,bench,dev\]'$"):
        importlib.import_module("site_speed")


def test_a_dry_run_prints(
    writer: ModuleType, folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path.parent / "code.py").write_text("x = 1\n")
    generate(writer, folder, monkeypatch, "--dry-run")
    assert '"kind": "totals"' in capsys.readouterr().out
    assert not (folder.path / "totals").exists()


def test_missing_data(writer: ModuleType, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.path.parent.parent / "data" / "sides.txt").unlink()
    with pytest.raises(SystemExit, match=r"sides\.txt is not under .*; set SERVELAB_DATA or --data"):
        generate(writer, folder, monkeypatch)


def test_a_clock_that_is_none(writer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH='yesterday' is no number of seconds"):
        writer.day()


def test_scripts_are_the_kinds_that_can_be_recomputed() -> None:
    assert set(RECOMPUTE) <= set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_plans(writer: ModuleType, script: str) -> None:
    """The file name is the contract; derived receipts are core's, replayed ones say so."""
    plan = importlib.import_module(script).PLAN
    assert plan.kind == script and plan.losses and plan.tolerance
    assert plan.device == {"derived": "core", "replayed": "replay"}.get(plan.evidence, plan.device)
