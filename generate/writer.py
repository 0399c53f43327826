"""From a Result to a committed receipt: what every script of this folder does after its own work.

A receipt names the commit that made it, so the tree must be clean (receipts/ itself aside). The date is
SOURCE_DATE_EPOCH's day, else today's. The environment tells what kind of machine and which versions, never a host
name or a path.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

try:
    from servelab import __version__
    from servelab.receipt.canonical import canonical, sha256
    from servelab.receipt.numbers import real
    from servelab.receipt.result import Files, Result
    from servelab.receipt.samples import STATISTICS
    from servelab.receipt.schema import SCHEMA, Metric, read
    from servelab.receipt.verify import data_directory
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed here; . .venv/bin/activate first, which make build sets up")

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "generate" / "runs"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a script declares. `device` is the first part of the file's name: "core" for derived, "replay" for
    replayed, else the machine. `data`: names of outside files. `tolerance`: metric → (min, max). `extra`: samples or
    assumptions."""

    kind: str
    system: str
    evidence: str
    device: str
    workload: Mapping[str, Any]
    losses: Sequence[str]
    tolerance: Mapping[str, tuple[float, float]]
    data: Sequence[str] = ()
    seed: int | None = None
    extra: Mapping[str, Any] | None = None


def main(plan: Plan, run: Callable[[Files], Result | tuple[Result, Mapping[str, Any]]]) -> None:
    """Parse the command line, look at the tree, then `run(name → bytes of the outside files)` and write the receipt, or
    say what is in the way. A run that measures returns its Result with what it adds to the plan's `extra`: its samples.
    """
    parser = argparse.ArgumentParser(prog=f"generate/{plan.kind}.py", description=f"Write receipts/{plan.kind}/….json.")
    parser.add_argument("--receipts", type=Path, default=ROOT / "receipts", metavar="DIR", help="the receipts folder")
    parser.add_argument(
        "--data", type=Path, default=data_directory(), metavar="DIR", help="outside data (SERVELAB_DATA)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the receipt, write nothing, allow a tree with changes"
    )
    options = parser.parse_args()
    try:
        commit = head(clean=not options.dry_run)
        files = {name: outside(options.data, name) for name in plan.data}
        done = run(files)
        result, more = done if isinstance(done, tuple) else (done, {})
        receipt = assemble(replace(plan, extra={**(plan.extra or {}), **more}), result, files, commit)
        print(deliver(receipt, plan.device, options.receipts, options.dry_run))
    except ValueError as error:
        sys.exit(f"error: {error}")


def measured(
    samples: Mapping[str, Sequence[float]], unit: Callable[[str], str], statistic: str = "median"
) -> tuple[Result, dict[str, Any]]:
    """What a measuring run returns: `<sample>_<statistic>` of every sample in the unit of its name, and the samples."""
    metrics = {
        f"{name}_{statistic}": Metric(STATISTICS[statistic](values), unit(name), len(values))
        for name, values in samples.items()
    }
    return Result(metrics), {"samples": samples}


def head(clean: bool) -> str:
    """The commit of HEAD. ValueError when `clean` is asked for and the tree outside receipts/ has changes."""
    changed = _git("status", "--porcelain", "--", ".", ":!receipts")
    if clean and changed:
        raise ValueError(
            f"the tree has changes, e.g. {changed.splitlines()[0].strip()!r}; commit them first, or use --dry-run"
        )
    return _git("rev-parse", "HEAD")


def outside(directory: Path, name: str) -> bytes:
    """The bytes of a file, found by name among the recordings of this repository or anywhere under `directory`."""
    found = [*RUNS.glob(name), *sorted(directory.rglob(name))]
    if not found:
        raise ValueError(
            f"{name} is not under {str(directory)!r}; set SERVELAB_DATA or --data to the folder that holds it"
        )
    return found[0].read_bytes()


def assemble(plan: Plan, result: Result, files: Mapping[str, bytes], commit: str) -> dict[str, Any]:
    """The receipt's object, checked by the reader."""
    metrics = {
        name: {
            "value": _number(m.value),
            "unit": m.unit,
            "n": m.n,
            "ci95": None if m.ci95 is None else [_number(x) for x in m.ci95],
        }
        for name, m in result.metrics.items()
    }
    receipt = {
        "schema": SCHEMA,
        "system": plan.system,
        "kind": plan.kind,
        "evidence": plan.evidence,
        "claims": [f"{plan.kind}.{name}" for name in metrics],
        "command": f"python generate/{plan.kind}.py",
        "seed": plan.seed,
        "commit": commit,
        "date": day(),
        "environment": environment(),
        "workload": plan.workload,
        "data": [{"name": name, "sha256": sha256(content)} for name, content in files.items()],
        "metrics": metrics,
        "losses": list(plan.losses),
        "tolerance": {name: {"min": low, "max": high} for name, (low, high) in plan.tolerance.items()},
        **({"statistic": result.statistic} if result.statistic else {}),
        **(plan.extra or {}),
    }
    plain = json.loads(canonical(receipt))
    read(plain)
    return plain


def deliver(receipt: Mapping[str, Any], device: str, directory: Path, dry_run: bool) -> str:
    """Write the canonical file; what to tell the user. A dry run gives the receipt as indented text instead."""
    if dry_run:
        return json.dumps(receipt, indent=1, ensure_ascii=False)
    path = directory / receipt["kind"] / f"{device}-{receipt['date']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canonical(receipt))
    size = f"{len(receipt['metrics'])} metrics, {path.stat().st_size:,} bytes"
    return f"{path.parent.name}/{path.name}: {size}; commit it, then attest"


def day() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.date.today().isoformat()
    if not epoch.isdigit():
        raise ValueError(f"SOURCE_DATE_EPOCH={epoch!r} is no number of seconds since 1970; unset it or use digits")
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()


def environment() -> dict[str, str]:
    return {
        "cpu": _cpu(),
        "machine": f"{_cpu()}, {os.cpu_count()} logical cores",
        "os": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "servelab": __version__,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(models), "") or platform.processor() or platform.machine() or "unknown"


def _number(x: float) -> float:
    return x if isinstance(x, int) else real(x)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(
            f"git {arguments[0]} failed: {done.stderr.strip()}; a receipt names a commit, so run this in a git checkout"
        )
    return done.stdout.strip()
