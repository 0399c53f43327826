"""What a visit to the built site costs: `python generate/bench_site.py [--json FILE] [--repeats N]`.

Headless Chromium against `build.py serve`. A cold visit has a new profile; a warm one is a new browser process on that
profile after the offline copy is complete. Times run from the navigation: largest contentful paint as the browser
reports it, Python ready when the worker says so, live when the first frame that Python made is drawn. A slider move
runs from its event to the new picture on the canvas: a step with an arrow key, whose picture the page may have computed
ahead while nothing moved, or a jump over several steps to a state that it has not seen. Bytes are what the browser
counts as transferred, page and workers, until live. Every number is the median of the repeats; for slider moves, of
each repeat's 95th percentile.
Nothing is asserted: the limits are printed beside what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    from drags import DRAGS, Drag, moves, p95
    from playwright.sync_api import BrowserContext, Page, Playwright, sync_playwright

    from servelab.build.check import OWN_JAVASCRIPT, TRANSFER, modules
    from servelab.build.project import Project
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is missing; . .venv/bin/activate, then pip install -e '.[site,bench,dev]'")

ROOT = Path(__file__).resolve().parents[1]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
PRESETS = {"desktop": 95, "mobile": 85}

SPY = """(() => {
  const seen = window.bench = {lcp: 0};
  new PerformanceObserver(list => { seen.lcp = list.getEntries().at(-1).startTime; })
    .observe({type: "largest-contentful-paint", buffered: true});
  const Real = window.Worker;
  window.Worker = class extends Real {
    constructor(...how) {
      super(...how);
      this.addEventListener("message", ({data}) => { if (data.type === "ready") seen.ready = performance.now(); });
    }
  };
})();"""

READ = """() => ({...bench, live: performance.getEntriesByName("live")[0].startTime,
  path: document.querySelector("#boot").textContent.match(/\\((\\w+)\\)/)?.[1],
  needs: JSON.parse(document.querySelector("#config").textContent).studio.needs})"""

TRANSFERRED = """until => performance.getEntries().filter(e => e.transferSize !== undefined &&
  performance.timeOrigin + e.startTime < until).reduce((sum, e) => sum + e.transferSize, 0)"""

COPIED = """async () => {
  await navigator.serviceWorker.ready;
  const count = async () => {
    let n = 0;
    for (const name of await caches.keys()) n += (await (await caches.open(name)).keys()).length;
    return n;
  };
  for (let now = -1, before; now !== before;) {
    before = now;
    await new Promise(done => setTimeout(done, 1500));
    now = await count();
  }
}"""

@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: `limit` None is only printed; `least` turns it into a lower bound."""

    name: str
    samples: list[float]
    limit: float | None
    unit: str
    least: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return ""
        return "pass" if (self.median >= self.limit if self.least else self.median <= self.limit) else "FAIL"

    def __str__(self) -> str:
        asked = "" if self.limit is None else f"{'≥' if self.least else '≤'} {self.limit:,.0f}"
        spread = f"{min(self.samples):,.0f} to {max(self.samples):,.0f}"
        return f"{self.name:<44}{asked:>12}{self.median:>12,.0f} {self.unit:<6}{self.verdict:<6}{spread}"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of `build.py serve` over a built site."""
    command = [sys.executable, str(ROOT / "build.py"), "serve", "--port", "0", "--folder", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield next(word for word in server.stdout.readline().split() if word.startswith("http"))
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def chromium(play: Playwright, profile: Path) -> Iterator[BrowserContext]:
    """A browser process on a profile."""
    binary = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    context = play.chromium.launch_persistent_context(profile, executable_path=binary, args=FLAGS, headless=True)
    try:
        yield context
    finally:
        context.close()


def visit(context: BrowserContext, url: str) -> tuple[Page, dict[str, Any]]:
    """Open a studio and wait until it is live: its page and what the browser measured."""
    page = context.pages[0] if context.pages else context.new_page()
    page.add_init_script(SPY)
    page.goto(url)
    page.wait_for_selector("html[data-live]", timeout=120_000)
    seen: dict[str, Any] = page.evaluate(READ)
    until = page.evaluate("performance.timeOrigin") + seen["live"]
    places: list[Any] = [page, *page.workers]
    seen["bytes"] = sum(place.evaluate(TRANSFERRED, until) for place in places)
    return page, seen


def lighthouse(url: str, preset: str) -> dict[str, float]:
    """Scores 0 to 100 by category, and two of its times in ms."""
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless=new", *FLAGS, f"--user-data-dir={profile}"]
        command = [
            str(ROOT / "site/node_modules/.bin/lighthouse"), url, "--quiet", "--output=json", "--output-path=stdout",
            f"--only-categories={','.join(CATEGORIES)}", "--no-enable-error-reporting",
            f"--chrome-flags={' '.join(flags)}", *(["--preset=desktop"] if preset == "desktop" else []),
        ]  # fmt: skip
        binary = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
        env = os.environ | {"CHROME_PATH": binary}
        report = json.loads(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)
    scores: dict[str, float] = {name: 100 * (report["categories"][name]["score"] or 0) for name in CATEGORIES}
    for audit in ("total-blocking-time", "largest-contentful-paint"):
        scores[audit] = report["audits"][audit]["numericValue"]
    return scores


def visits(play: Playwright, url: str, drag: Drag, repeats: int) -> dict[str, list[Any]]:
    """Cold and warm visits and slider moves, one profile per repeat; one visit before that, while files are zipped."""
    out: dict[str, list[Any]] = {"cold": [], "warm": [], "moves": []}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, chromium(play, Path(profile)) as context:
        visit(context, url)
    for i in range(repeats):
        print(f"visit {i + 1} of {repeats} …", file=sys.stderr)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            with chromium(play, Path(profile)) as context:
                page, seen = visit(context, url)
                out["cold"].append(seen)
                page.evaluate(COPIED)
            with chromium(play, Path(profile)) as context:
                page, seen = visit(context, url)
                out["warm"].append(seen)
                if drag.state:
                    page.goto("about:blank")  # else the browser would only change the hash
                    page, _ = visit(context, f"{url}#{drag.state}")
                out["moves"].append(moves(page, drag))
    return out


def rows(name: str, site: Path, seen: dict[str, list[Any]], scores: dict[str, list[dict[str, float]]]) -> list[Row]:
    """The table of one studio."""
    page = site / name.replace("_", "-") / "index.html"
    out = [
        Row(f"{metric}, {when}", [run[key] for run in seen[when]], limit, "ms")
        for key, metric, limits in (
            ("lcp", "largest contentful paint", (500, 500)),
            ("ready", "Python ready", (3500, 2500)),
            ("live", "first live frame", (3500, 2500)),
        )
        for when, limit in zip(("cold", "warm"), limits, strict=True)
    ]
    for kind in ("step", "jump"):
        for key, most in (("drawn", DRAGS[name].most), ("shown", None)):
            tails = [p95([move[key] for move in run[kind]]) for run in seen["moves"]]
            out.append(Row(f"slider {kind} to the picture {key}, p95", tails, most, "ms"))
    budget = TRANSFER["numpy" in seen["cold"][0]["needs"]]
    out.append(Row("transferred until live, cold", [run["bytes"] for run in seen["cold"]], budget, "B"))
    ours = sum(path.stat().st_size for path in modules(page))
    out.append(Row("our JavaScript that the page loads", [ours], OWN_JAVASCRIPT, "B"))
    for preset, runs in scores.items():
        for category in runs[0]:
            limit = PRESETS[preset] if category == "performance" else 100 if category in CATEGORIES[1:3] else None
            unit = "" if category in CATEGORIES else "ms"
            samples = [run[category] for run in runs]
            out.append(Row(f"Lighthouse {preset}: {category}", samples, limit, unit, least=True))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample to FILE")
    parser.add_argument("--repeats", type=int, default=5, help="visits, and Lighthouse runs per preset (default 5)")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist" / "site", help="a built site")
    parser.add_argument("--no-lighthouse", action="store_true", help="leave Lighthouse out")
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error(f"--repeats {args.repeats} is outside 1…; use 5")
    if not (args.folder / "index.html").is_file():
        parser.error(f"{args.folder} holds no built site; run make build first")
    raw = {}
    for name in Project.at(ROOT).studio_names():
        with served(args.folder) as address, sync_playwright() as play:
            url = f"{address}{name.replace('_', '-')}/"
            seen = visits(play, url, DRAGS[name], args.repeats)
            scores: dict[str, list[dict[str, float]]] = {}
            for preset in () if args.no_lighthouse else PRESETS:
                print(f"Lighthouse, {preset} …", file=sys.stderr)
                scores[preset] = [lighthouse(url, preset) for _ in range(args.repeats)]
        print(f"{name}: medians of {args.repeats}\n{'':<44}{'asked':>12}{'got':>12}")
        print("\n".join(str(row) for row in rows(name, args.folder, seen, scores)))
        raw[name] = seen | {"lighthouse": scores}
    if args.json:
        args.json.write_text(json.dumps(raw, indent=1) + "\n")


if __name__ == "__main__":
    main()
