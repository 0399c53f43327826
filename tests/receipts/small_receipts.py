"""Small receipts whose numbers follow from a formula that every test can do by hand, and the folder that holds them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servelab.receipt import attest
from servelab.receipt.canonical import canonical, parse, sha256
from servelab.receipt.result import Files, Result
from servelab.receipt.schema import Metric, Receipt

TABLE = b"3\n4\n5\n"
"""The outside data of the replayed receipt: side lengths."""

DERIVED: dict[str, Any] = {
    "schema": "urn:servelab:receipt:1",
    "system": "squares",
    "kind": "squares",
    "evidence": "derived",
    "claims": ["squares.area", "squares.diagonal"],
    "command": "python generate/squares.py",
    "seed": None,
    "commit": "0" * 40,
    "date": "2026-11-30",
    "environment": {"cpu": "any"},
    "workload": {"side": 12},
    "data": [],
    "metrics": {
        "area": {"value": 144, "unit": "cells", "n": 1, "ci95": None},
        "diagonal": {"value": 16.9705627484771, "unit": "cells", "n": 1, "ci95": None},
    },
    "losses": ["A square is no rectangle."],
    "tolerance": {"area": {"min": 144, "max": 144}},
}

REPLAYED = DERIVED | {
    "kind": "sides",
    "evidence": "replayed",
    "claims": ["sides.total"],
    "data": [{"name": "sides.txt", "sha256": sha256(TABLE)}],
    "statistic": {"sides": [3, 4, 5]},
    "metrics": {
        "total": {"value": 12, "unit": "cells", "n": 3, "ci95": None},
        "first": {"value": 3, "unit": "cells", "n": 1, "ci95": None},
    },
    "tolerance": {},
}

MEASURED = DERIVED | {
    "kind": "timing",
    "evidence": "measured",
    "claims": ["timing.alloc_ns_median"],
    "environment": {"machine": "Example CPU, 2 cores"},
    "samples": {"alloc_ns": [210, 190, 200, 250]},
    "metrics": {
        "alloc_ns_median": {"value": 205, "unit": "ns", "n": 4, "ci95": [190, 250]},
        "alloc_ns_p90": {"value": 238, "unit": "ns", "n": 4, "ci95": None},
    },
    "tolerance": {},
}

MODEL = DERIVED | {
    "kind": "forecast",
    "evidence": "model",
    "claims": ["forecast.speed"],
    "assumptions": ["The memory bus is the limit."],
    "metrics": {"speed": {"value": 41.5, "unit": "tokens/s", "n": 1, "ci95": None}},
    "tolerance": {},
}

EXAMPLES = {"derived": DERIVED, "replayed": REPLAYED, "measured": MEASURED, "model": MODEL}


def squares(receipt: Receipt, files: Files) -> Result:
    side = receipt.workload["side"]
    return Result({"area": Metric(side * side, "cells", 1), "diagonal": Metric(side * 2**0.5, "cells", 1)})


def sides(receipt: Receipt, files: Files) -> Result:
    """The total follows from the statistic; the first side needs the file, as an order that the statistic leaves
    out."""
    assert receipt.statistic is not None
    total = {"total": Metric(sum(receipt.statistic["sides"]), "cells", 3)}
    if not files:
        return Result(total, missing={"first": "needs sides.txt"})
    lengths = [int(line) for line in files["sides.txt"].split()]
    return Result(total | {"first": Metric(lengths[0], "cells", 1)}, statistic={"sides": lengths})


@dataclass(frozen=True, slots=True)
class Folder:
    """A receipts folder in a git repository of its own, with the private key beside the repository."""

    path: Path
    key: Path

    def file(self, kind: str) -> Path:
        return next((self.path / kind).glob("*.json"))

    def edit(self, kind: str, change: Callable[[dict[str, Any]], None]) -> Path:
        """Change one receipt and leave it canonical, as a careful forger would."""
        path = self.file(kind)
        value = parse(path.read_bytes())
        change(value)
        path.write_bytes(canonical(value))
        return path

    def attest(self) -> None:
        attest.sign(self.path, self.key)


def first_commit(repository: Path) -> str:
    who = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", "a"), ("EMAIL", "a@b"))
    }
    for command in ("init", "commit -q --allow-empty -m start"):
        subprocess.run(
            ["git", "-c", "commit.gpgsign=false", *command.split()],
            cwd=repository,
            env=os.environ | who,
            check=True,
            capture_output=True,
        )
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()
