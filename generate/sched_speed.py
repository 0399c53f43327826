"""sched_speed, measured: the Mooncake hour through the simulator in CPython and in Pyodide, and a million requests."""

import sys
from typing import Any

from bench_sched import MILLION, RATE, REPEATS, TRACE, measure
from writer import Plan, main, measured

PLAN = Plan(
    kind="sched_speed",
    system="sched-sim",
    evidence="measured",
    device="cpu",
    workload={
        "trace": "Mooncake FAST'25, conversation: 12,031 requests",
        "replay": "4 replicas, round robin, Qwen2.5-7B on H200, prefix cache, all metrics",
        "million": f"{MILLION:,} requests of the traffic 'short' at {4 * RATE:g}/s, 4 replicas",
        "repeats": REPEATS,
    },
    losses=(
        "Reading and parsing the trace is not counted; it takes about as long again.",
        "Pyodide ran under Node; a browser's engine and a phone's processor give other seconds.",
        "The million is one run of short requests; long ones take more iterations each.",
        "An iteration is counted, not executed: runs of equal decode steps are one evaluation.",
    ),
    tolerance={
        "cpython_s_median": (0, 0.6),
        "pyodide_s_median": (0, 1.2),
        "million_s_median": (0, 60),
        "million_peak_mb_median": (0, 500),
    },
)


def samples() -> dict[str, list[float]]:
    """Seconds by repeat, iterations per second, and the peak memory of the million."""
    found = measure(REPEATS)
    if len(found) == 1:
        sys.exit(f"error: {TRACE} is not here; set SERVELAB_DATA to the folder that holds it")
    out: dict[str, Any] = {}
    for name in ("CPython", "Pyodide"):
        row = found[f"replay in {name}"]
        out[f"{name.lower()}_s"] = row["seconds"]
        out[f"{name.lower()}_iterations_per_s"] = [row["iterations"] / s for s in row["seconds"]]
    return out | {"million_s": [found["million"]["seconds"]], "million_peak_mb": [found["million"]["peak_mb"]]}


def unit(name: str) -> str:
    return "iterations/s" if name.endswith("per_s") else "MB" if name.endswith("mb") else "s"


if __name__ == "__main__":
    main(PLAN, lambda files: measured(samples(), unit))
