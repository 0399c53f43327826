"""What bench_site drags on each studio's page, and how long a picture takes to follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from playwright.sync_api import Page

AWAY = (-6, -3, 4, 2, -5, 5, -2, 6, 3, -4)  # steps from the default; no two in a row are neighbours
MOVES = 50
PAUSE = 250  # ms between moves: each is measured alone

LISTEN = """() => {
  let began = 0;
  window.moved = null;
  window.jump = (id, by) => {
    const slider = document.getElementById(id);
    slider.value = +slider.defaultValue + by;
    slider.dispatchEvent(new Event("input", {bubbles: true}));
  };
  for (const type of ["keydown", "input"]) {
    addEventListener(type, event => {
      if (type === "input" && event.isTrusted) return; // the key's own
      began = event.timeStamp;
      window.moved = null;
    }, true);
  }
  new MutationObserver(() => {
    if (window.moved || !began) return;
    const drawn = performance.now() - began;
    window.moved = {drawn};
    requestAnimationFrame(() => setTimeout(() => { window.moved.shown = performance.now() - began; }));
  }).observe(document.documentElement, {attributeFilter: ["data-picture"]});
}"""


@dataclass(frozen=True, slots=True)
class Drag:
    """What is dragged on a studio's page: sliders by a step, and {slider: step} by several; `most` ms are asked."""

    state: str
    sliders: tuple[str, ...]
    jumps: dict[str, float]
    most: float


DRAGS = {
    "planner": Drag("", ("clients", "prompt", "tp", "busy"), {"clients": 1, "prompt": 1, "accept": 5}, 50),
    "batcher": Drag("requests=1000", ("rate", "slots", "budget", "cv"), {"rate": 1, "slots": 2}, 100),
    "kv_desk": Drag(
        "", ("conversations", "prefix", "private", "block_size", "pool"),
        {"conversations": 1, "prefix": 16, "private": 8}, 50,
    ),
}  # fmt: skip


def moves(page: Page, drag: Drag) -> dict[str, list[dict[str, float]]]:
    """Moves of the sliders, ms until drawn and until shown: arrow keys, there and back, then jumps."""
    steps, jumps = [], []
    page.evaluate(LISTEN)
    for i in range(MOVES):
        page.focus(f"#r-{drag.sliders[i // 2 % len(drag.sliders)]}")
        page.wait_for_timeout(PAUSE)
        page.keyboard.press("ArrowLeft" if i % 2 else "ArrowRight")
        page.wait_for_function("() => window.moved?.shown")
        steps.append(page.evaluate("window.moved"))
    for i in range(MOVES):
        slider, step = list(drag.jumps.items())[i % len(drag.jumps)]
        page.wait_for_timeout(PAUSE)
        page.evaluate("([id, by]) => jump(id, by)", [f"r-{slider}", step * AWAY[i // len(drag.jumps) % len(AWAY)]])
        page.wait_for_function("() => window.moved?.shown")
        jumps.append(page.evaluate("window.moved"))
    return {"step": steps, "jump": jumps}


def p95(values: list[float]) -> float:
    """95th percentile, nearest rank."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]
