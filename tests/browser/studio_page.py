"""What CPython says a studio page must show: the core called directly, as an oracle for pages."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from servelab.build.project import Project
from servelab.receipt import load_all
from servelab.view import bridge
from servelab.view.control import controls, from_query, to_query
from servelab.view.metric import Metric
from servelab.view.studio import Studio, studio

ROOT = Path(__file__).parents[2]
STUDIOS = Project.at(ROOT).studio_names()
LIVE = "html[data-live]"
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 800}


def live(page: Any) -> Any:
    """The page, once Python has drawn on it; fails with what the page says when that goes wrong."""
    page.wait_for_selector(f"{LIVE}, #retry:not([hidden])", timeout=60_000)
    assert page.locator(LIVE).count(), page.inner_text("#status")
    return page


def redrawn(page: Any, act: Callable[[], Any]) -> None:
    """Do something, then wait until Python's new picture is on the screen."""
    page.evaluate("delete document.documentElement.dataset.picture")
    act()
    page.wait_for_selector("html[data-picture]", timeout=20_000)


def canvases(page: Any, root: str = "#stage-a") -> list[str]:
    """The pixels of every canvas that is drawn, as PNG data."""
    drawn: list[str] = page.locator(f"{root} canvas[role=img]").evaluate_all("all => all.map(c => c.toDataURL())")
    return drawn


def tiles(page: Any, root: str = "#tiles-a") -> dict[str, str]:
    """Title → the number shown."""
    read = "all => all.map(t => [t.querySelector('.label'), t.querySelector('.figure')].map(e => e.textContent))"
    return dict(page.locator(f"{root} .tile").evaluate_all(read))


@cache
def receipts() -> dict[str, Any]:
    return dict(load_all(ROOT / "receipts"))


def expected(query: dict[str, str], tick: int | None = None, name: str = "kv_desk") -> dict[str, str]:
    """The tiles of a state at a tick (None: where the page opens), as an English reader writes them."""
    room = studio(name)
    frame = room.view(from_query(room.State, query), receipts())
    at = frame.clock.start if tick is None and frame.clock else tick or 0
    return {m.title: _figure(m, at) for m in frame.panels if isinstance(m, Metric)}


def _figure(metric: Metric, tick: int) -> str:
    value = metric.value
    if metric.t is not None and metric.series is not None:
        value = next(v for t, v in reversed(list(zip(metric.t.data, metric.series.data, strict=True))) if t <= tick)
    return f"{value:,.{metric.digits}f}" if isinstance(value, (int, float)) else str(value)


def nearby(room: Studio, rng: random.Random) -> dict[str, str]:
    """URL text of a preset with three controls moved at random, each number by at most a factor of four."""
    base = rng.choice(list(room.PRESETS.values())).state
    query = to_query(base)
    for spec in rng.sample(controls(room.State), 3):
        query[spec["key"]] = _moved(spec, getattr(base, spec["key"]), rng)
    return query


def _moved(spec: dict[str, Any], value: Any, rng: random.Random) -> str:
    if spec["form"] == "switch":
        return rng.choice("01")
    if spec["form"] == "menu":
        return str(rng.choice(spec["choices"])[0])
    low, high = max(spec["min"], value / 4), min(spec["max"], value * 4 + 4 * spec["step"])
    moved = math.exp(rng.uniform(math.log(low + 1), math.log(high + 1))) - 1
    return str(round(moved) if spec["type"] == "int" else float(f"{moved:.3g}"))


def called(name: str, query: dict[str, str], rest: bool = False) -> tuple[str, list[bytes]]:
    """What the bridge answers here for a view, or for what is computed last."""
    return bridge.call("view", json.dumps({"studio": name, "state": query, "rest": rest}))
