"""Frames a second while Batcher's timeline plays with 100,000 spans: `python generate/bench_gantt.py [--json FILE]`.

The page takes a run with more requests than its slider allows as its first picture, as a file, and plays it at each
speed in headless Chromium without a GPU. Printed: frames a second (asked: 55 at least), and the longest gap between
two frames, as medians of the repeats. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

try:
    from bench_site import ROOT, chromium, served, sync_playwright
    from playwright.sync_api import Page

    from servelab.build.node import compact
    from servelab.build.pages import bake
    from servelab.view.gantt import Gantt
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is missing; . .venv/bin/activate, then pip install -e '.[site,bench,dev]'")

sys.path.insert(0, str(ROOT))
from studios.batcher.view import State, view  # noqa: E402

SPANS = 100_000
ASKED = 55
STATE = State(traffic="sharegpt", budget=64, slots=48, rate=60.0, requests=2300)
SECONDS = 5

COUNT = """seconds => new Promise(done => {
  const seen = [];
  const until = performance.now() + 1000 * seconds;
  const run = () => {
    const now = performance.now();
    seen.push(now);
    if (now < until) requestAnimationFrame(run); else done(seen);
  };
  requestAnimationFrame(run);
})"""


def picture() -> tuple[int, bytes]:
    """The spans of the run and its picture, as the file that a page reads."""
    frame = view(STATE, {})
    spans = next(panel.row.data for panel in frame.panels if isinstance(panel, Gantt))
    return len(spans), compact(bake(frame))


def play(page: Page, speed: str) -> dict[str, float]:
    """Play from the start for SECONDS: frames a second and the longest gap, ms."""
    page.select_option("#speed", speed)
    page.click("[data-do=restart]")
    page.click("[data-do=play]")
    seen: list[float] = page.evaluate(COUNT, SECONDS)
    before = page.locator("#scrub").input_value()
    page.click("[data-do=restart]")
    if not int(before):
        raise ValueError("the clock stood still; is the page what build.py builds?")
    gaps = [b - a for a, b in zip(seen, seen[1:], strict=False)]
    return {"fps": 1000 * len(gaps) / (seen[-1] - seen[0]), "longest": max(gaps)}


def measured(folder: Path, repeats: int) -> tuple[int, dict[str, list[dict[str, float]]]]:
    """The spans in the picture and, for each speed of the player, what every repeat saw."""
    spans, body = picture()
    if spans < SPANS:
        raise ValueError(f"this run has {spans:,} spans, fewer than {SPANS:,}; give STATE more requests")
    with (
        served(folder) as address,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        sync_playwright() as player,
        chromium(player, Path(profile)) as context,
    ):
        context.route("**/worker.mjs", lambda route: route.abort())  # the picture stays what the file says
        context.route("**/batcher-chunked.json", lambda route: route.fulfill(body=body))
        page = context.pages[0]
        page.goto(f"{address}batcher/")
        page.wait_for_selector("#stage-a [data-kind=gantt] canvas[role=img]")
        speeds = page.locator("#speed option").evaluate_all("all => all.map(one => one.value)")
        return spans, {speed: [play(page, speed) for _ in range(repeats)] for speed in speeds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample to FILE")
    parser.add_argument("--repeats", type=int, default=5, help="of each speed (default 5)")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist" / "site", help="a built site")
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error(f"--repeats {args.repeats} is outside 1…; use 5")
    if not (args.folder / "index.html").is_file():
        parser.error(f"{args.folder} holds no built site; run make build first")
    spans, raw = measured(args.folder, args.repeats)
    print(f"{spans:,} spans of {STATE.requests:,} requests, medians of {args.repeats} times {SECONDS} s")
    for speed, runs in raw.items():
        fps, longest = (statistics.median(run[key] for run in runs) for key in ("fps", "longest"))
        verdict = "pass" if fps >= ASKED else "FAIL"
        print(f"speed {speed:<6}{fps:6.1f} frames/s (asked: ≥ {ASKED}) {verdict}, longest gap {longest:4.0f} ms")
    if args.json:
        args.json.write_text(json.dumps({"spans": spans, "speeds": raw}, indent=1) + "\n")


if __name__ == "__main__":
    main()
