"""How fast the simulator is: `python generate/bench_sched.py [--json] [--repeats N]`.

"replay": the Mooncake conversation hour (12,031 requests) through 4 replicas of a 7B engine with a prefix cache, all
metrics; reading the file is not counted. In CPython and in Pyodide (under Node), medians over the repeats, with the
iterations that were simulated per second. "million": 10^6 generated requests in a fresh process, seconds and peak
memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

try:
    from servelab.kv.trace import read
    from servelab.receipt.verify import data_directory
    from servelab.sched import hardware
    from servelab.sched.arrivals import generate
    from servelab.sched.engine import Engine
    from servelab.sched.metrics import summary
    from servelab.sched.request import from_trace
    from servelab.sched.simulate import simulate
    from servelab.sched.traffic import NAMED
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed here; . .venv/bin/activate first, which make build sets up")

ROOT = Path(__file__).resolve().parent.parent
TRACE = "mooncake_fast25_conversation.jsonl.gz"
REPEATS, MILLION, RATE = 9, 1_000_000, 60.0


def engine(prefix: bool) -> Engine:
    """Qwen2.5-7B on an H200, as the command line has it."""
    cost, _ = hardware.cost("H200", "Qwen2.5-7B")
    return Engine(cost, blocks=hardware.pool("H200", "Qwen2.5-7B"), prefix=prefix)


def replay(path: str, repeats: int) -> str:
    """Seconds of each repeat and the iterations of one, as JSON; called in CPython and in Pyodide alike."""
    work = from_trace(read(path))
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        found = summary(simulate(work, engine(prefix=True), 4))
        seconds.append(time.perf_counter() - begun)
    return json.dumps({"seconds": seconds, "iterations": found["iterations"], "finished": found["finished"]})


def million() -> str:
    """Seconds to simulate and to sum up 10^6 short requests on 4 replicas, and this process's peak memory, MB."""
    import resource

    traffic = replace(NAMED["short"], requests=MILLION, rate=4 * RATE)
    work = generate(traffic, 0)
    begun = time.perf_counter()
    found = summary(simulate(work, engine(prefix=False), 4))
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    about = {"iterations": found["iterations"], "finished": found["finished"]}
    return json.dumps(about | {"seconds": seconds, "peak_mb": peak})


def fresh(expression: str) -> dict[str, Any]:
    """An expression of this module in a process of its own."""
    code = f"import bench_sched; print(bench_sched.{expression})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "generate"), str(ROOT / "core")))},
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def pyodide(path: Path, repeats: int) -> dict[str, Any]:
    """The replay in Pyodide."""
    expression = f"bench_sched.replay('/2/{path.name}', {repeats})"
    folders = [str(ROOT / "core"), str(ROOT / "generate"), str(path.parent)]
    command = ["node", str(ROOT / "site/runtime/script.mjs"), expression, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def measure(repeats: int) -> dict[str, dict[str, Any]]:
    """All of it; without the trace, the million alone."""
    out = {"million": fresh("million()")}
    if found := sorted(data_directory().rglob(TRACE)):
        out["replay in CPython"] = fresh(f"replay({str(found[0])!r}, {repeats})")
        out["replay in Pyodide"] = pyodide(found[0], repeats)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the samples")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of the replay")
    options = parser.parse_args()
    found = measure(options.repeats)
    if options.json:
        return print(json.dumps(found, indent=1))
    for name, row in found.items():
        seconds = row["seconds"] if isinstance(row["seconds"], float) else statistics.median(row["seconds"])
        memory = f", peak {row['peak_mb']:.0f} MB" if "peak_mb" in row else ""
        speed = row["iterations"] / seconds
        print(f"{name}: {seconds:.3f} s for {row['finished']:,} requests, {speed:,.0f} iterations/s{memory}")
    if len(found) == 1:
        print(f"left out: the replay, for which SERVELAB_DATA must hold {TRACE}")
    return None


if __name__ == "__main__":
    main()
