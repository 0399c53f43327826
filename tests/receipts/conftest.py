"""A folder of small receipts, signed, in a repository of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_receipts import EXAMPLES, TABLE, Folder, first_commit, sides, squares

from servelab.receipt import attest, recompute
from servelab.receipt.canonical import canonical


@pytest.fixture
def example() -> Callable[[str], dict[str, Any]]:
    return lambda evidence: copy.deepcopy(EXAMPLES[evidence])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setitem(recompute.RECOMPUTE, "squares", squares)
    monkeypatch.setitem(recompute.RECOMPUTE, "sides", sides)
    receipts = tmp_path / "repository" / "receipts"
    receipts.mkdir(parents=True)
    commit = first_commit(receipts.parent)
    for example in EXAMPLES.values():
        path = receipts / example["kind"] / f"core-{example['date']}.json"
        path.parent.mkdir()
        path.write_bytes(canonical(example | {"commit": commit}))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sides.txt").write_bytes(TABLE)
    monkeypatch.setenv("SERVELAB_DATA", str(tmp_path / "data"))
    key = tmp_path / "private.pem"
    attest.keygen(key, receipts, "example-2026-11")
    made = Folder(receipts, key)
    made.attest()
    return made
