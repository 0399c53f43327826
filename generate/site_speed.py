"""site_speed, measured: what visits to the KV desk and to Batcher, the front page, cost in headless Chromium.

The samples are bench_site's; the front page's are led by "front".
"""

from typing import Any

import bench_gantt
from bench_site import PRESETS, ROOT, lighthouse, served, sync_playwright, visits
from drags import DRAGS, MOVES, p95
from writer import Plan, main, measured

REPEATS = 5
SITE = ROOT / "dist" / "site"

PLAN = Plan(
    kind="site_speed",
    system="shell",
    evidence="measured",
    device="cpu",
    workload={
        "page": "kv-desk/",
        "front": f"the front page, sliders with {DRAGS['batcher'].state}",
        "repeats": REPEATS,
        "slider_moves_per_repeat": MOVES,
        "played": "Batcher's timeline at speed 1, spans as played_spans says",
    },
    losses=(
        "Asked: a slider move to the new picture in 50 ms (p95). A step of the KV desk meets it "
        "(slider_step_ms_median), because the pictures beside the current one are computed while nothing moves. A "
        "jump to a state that the page has not seen is on the limit, above it in slower hours "
        "(slider_jump_ms_median): three schemes are simulated and their logs folded in WebAssembly.",
        "Asked: 60 KB of our own JavaScript per page. That holds for what the page loads by itself; dialogs, "
        "foresight, explanations, file results and the panels far down come on demand, and all of them come to 113 KB.",
        "Asked: 100 ms (p95) from a slider to the new timeline of Batcher with 1,000 requests. A step meets it "
        "(front_slider_step_ms_median), a jump to a state that the page has not seen does not "
        "(front_slider_jump_ms_median): half of that is the simulation itself. Foresight, cheaper percentiles and "
        "curves, and a leaner loop were tried.",
        "Localhost has no network latency, and the machine is shared: medians of five, and still up to 1.5 times apart "
        "from day to day.",
    ),
    tolerance={"transferred_bytes_median": (1, 8_000_000), "live_cold_ms_median": (1, 3500)},
)


def samples() -> dict[str, list[float]]:
    """Milliseconds, bytes and scores by name; one number per visit or Lighthouse run, slider moves as p95 per visit."""
    if not (SITE / "index.html").is_file():
        raise ValueError("dist/site holds no built site; run make build first")
    with served(SITE) as address, sync_playwright() as play:
        out = visited(visits(play, f"{address}kv-desk/", DRAGS["kv_desk"], REPEATS))
        front = visited(visits(play, address, DRAGS["batcher"], REPEATS))
        scores = {preset: [lighthouse(f"{address}kv-desk/", preset) for _ in range(REPEATS)] for preset in PRESETS}
    out |= {f"front_{name}": values for name, values in front.items()}
    spans, played = bench_gantt.measured(SITE, REPEATS)
    out |= {"played_spans": [float(spans)], "played_fps": [run["fps"] for run in played["1"]]}
    for preset, runs in scores.items():
        for category in ("performance", "accessibility", "best-practices", "seo"):
            out[f"lighthouse_{preset}_{category.replace('-', '_')}"] = [float(run[category]) for run in runs]
    return out


def visited(seen: dict[str, list[Any]]) -> dict[str, list[float]]:
    """Of one page, all but the scores."""
    out = {
        f"{key}_{when}_ms": [float(run[key]) for run in seen[when]]
        for key in ("lcp", "ready", "live")
        for when in ("cold", "warm")
    }
    for kind in ("step", "jump"):
        out[f"slider_{kind}_ms"] = [p95([move["drawn"] for move in run[kind]]) for run in seen["moves"]]
    return out | {"transferred_bytes": [float(run["bytes"]) for run in seen["cold"]]}


def unit(name: str) -> str:
    """A sample's unit by the end of its name; a Lighthouse score is a number of 100."""
    return {"ms": "ms", "bytes": "B", "spans": "spans", "fps": "frames/s"}.get(name.rsplit("_", 1)[1], "of 100")


if __name__ == "__main__":
    main(PLAN, lambda files: measured(samples(), unit))
