"""How fast plans are solved: `python generate/bench_plan.py`.

Asked: 5,000 in 0.3 s in CPython and in 1 s in Pyodide, one in 1 ms. Nothing is asserted.

The 5,000 are models × devices × layouts × formats × clients, each solved once, with empty caches at the start of every
repeat; the one is a plan of another model each time, with empty caches. Pyodide runs under Node.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from itertools import islice, product
from pathlib import Path
from typing import Any

try:
    from servelab.plan import devices, memory, models, search, speed
    from servelab.plan.memory import Layout
    from servelab.plan.plan import Plan, solve
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed here; . .venv/bin/activate first, which make build sets up")

ROOT = Path(__file__).resolve().parents[1]
COUNT, REPEATS = 5_000, 9
LIMITS = {"CPython": 0.3, "Pyodide": 1.0}
ONE = 1.0


def plans() -> list[Plan]:
    shapes = [models.model(name) for name in models.table()]
    choices = product(shapes, devices.table().values(), (1, 2), ("bf16", "fp8"), (1, 64))
    return [Plan(s, d, Layout(tp), quant, clients=n) for s, d, tp, quant, n in islice(choices, 0, None, 7)][:COUNT]


def forget() -> None:
    """Empty what the planner remembers of shapes and layouts."""
    for module in (memory, search, speed):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def solved(repeats: int) -> str:
    """JSON: seconds of all by repeat, ms of fifty single ones, how many there are and how many fit."""
    every, seconds, single, fits = plans(), [], [], 0
    for _ in range(repeats):
        forget()
        begun = time.perf_counter()
        fits = sum(solve(plan).fits for plan in every)
        seconds.append(time.perf_counter() - begun)
    for plan in every[:: len(every) // 50]:
        forget()
        begun = time.perf_counter()
        solve(plan)
        single.append(1e3 * (time.perf_counter() - begun))
    return json.dumps({"plans": len(every), "fit": fits, "seconds": seconds, "single_ms": single})


def pyodide(repeats: int) -> dict[str, Any]:
    """The same under Node."""
    folders = [str(ROOT / "core"), str(ROOT / "generate")]
    command = ["node", str(ROOT / "site/runtime/script.mjs"), f"bench_plan.solved({repeats})", *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def measure(repeats: int) -> dict[str, dict[str, Any]]:
    return {"CPython": dict(json.loads(solved(repeats))), "Pyodide": pyodide(repeats)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error(f"--repeats {args.repeats} is outside 1…; use {REPEATS}")
    for name, row in measure(args.repeats).items():
        took, one = statistics.median(row["seconds"]), max(row["single_ms"])
        verdicts = ["pass" if value <= most else "FAIL" for value, most in ((took, LIMITS[name]), (one, ONE))]
        print(
            f"{row['plans']:,} plans in {name}, {row['fit']:,} fit: {took:.3f} s (asked: ≤ {LIMITS[name]}) "
            f"{verdicts[0]}; one: {statistics.median(row['single_ms']):.3f} ms, at most {one:.3f} (asked: ≤ {ONE}) "
            f"{verdicts[1]}"
        )


if __name__ == "__main__":
    main()
