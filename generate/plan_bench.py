"""plan_bench, measured: thousands of plans in CPython and in Pyodide, and the Planner's page in headless Chromium."""

import bench_plan
from bench_site import served, sync_playwright, visits
from drags import DRAGS, MOVES
from site_speed import REPEATS, SITE, visited
from writer import Plan, main, measured

PLAN = Plan(
    kind="plan_bench",
    system="infersize",
    evidence="measured",
    device="cpu",
    workload={
        "plans": "5,000 of models × devices × layouts × formats × clients, caches empty at the start of each repeat",
        "single": "fifty plans of other models each, caches empty before each",
        "pyodide": "under Node",
        "page": "planner/, sliders clients, prompt, tensor parallel, busy",
        "visits": REPEATS,
        "slider_moves_per_visit": MOVES,
    },
    losses=(
        "Pyodide ran under Node for the 5,000, in headless Chromium for the page; a phone gives other times.",
        "What the page computes last (cheapest plans, queue, Pareto front, all models on all devices) follows "
        "when the settings have rested for 0.4 s, and takes about 0.7 s; a slider that moves in just that time waits.",
        "Localhost has no network latency, and the machine is shared: up to 1.5 times apart from day to day.",
    ),
    tolerance={
        "cpython_s_median": (0, 0.3),
        "pyodide_s_median": (0, 1),
        "cpython_single_ms_median": (0, 1),
        "slider_step_ms_median": (0, 50),
        "transferred_bytes_median": (1, 8_000_000),
    },
)


def samples() -> dict[str, list[float]]:
    """Seconds of all plans by repeat, ms of single ones; ms and bytes of the page, slider moves as p95 per visit."""
    if not (SITE / "index.html").is_file():
        raise ValueError("dist/site holds no built site; run make build first")
    out = {}
    for name, row in bench_plan.measure(bench_plan.REPEATS).items():
        out[f"{name.lower()}_s"] = row["seconds"]
        out[f"{name.lower()}_single_ms"] = row["single_ms"]
    with served(SITE) as address, sync_playwright() as play:
        return out | visited(visits(play, f"{address}planner/", DRAGS["planner"], REPEATS))


def unit(name: str) -> str:
    return {"ms": "ms", "bytes": "B"}.get(name.rsplit("_", 1)[1], "s")


if __name__ == "__main__":
    main(PLAN, lambda files: measured(samples(), unit))
