"""The Batcher's timeline: what is drawn, pointed at, chosen, zoomed and played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from studio_page import live, redrawn, tiles

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
PICTURE = "#stage-a [data-kind=gantt] canvas[role=img]"
READOUT = "#stage-a [data-kind=gantt] .readout"


@pytest.fixture
def batcher(page_watch: Open) -> Any:
    page = live(page_watch("batcher/"))
    page.wait_for_selector(PICTURE)
    return page


def test_the_picture_is_there_without_python(page_watch: Open) -> None:
    page = page_watch("batcher/", prepare=lambda context: context.route("**/worker.mjs", lambda route: route.abort()))
    page.wait_for_selector(PICTURE)
    drawn = "e => new Set(e.getContext('2d').getImageData(0, 0, e.width, e.height).data).size"
    assert page.locator(PICTURE).evaluate(drawn) > 20
    assert page.locator("#tiles-a .figure").first.inner_text() not in ("", "–")


def test_every_preset_draws_what_its_legend_names(batcher: Any) -> None:
    busy = {"waiting", "prefill", "decode"}
    for preset, legend in {"chunked": busy, "static": {*busy, "wasted"}, "flood": busy}.items():
        redrawn(batcher, lambda preset=preset: batcher.click(f"[data-preset={preset}]"))
        found = batcher.locator("#stage-a [data-kind=gantt] .legend li")
        expect(found).to_have_count(len(legend))
        assert set(found.all_inner_texts()) == legend


def test_a_request_is_pointed_at_and_chosen(batcher: Any) -> None:
    canvas = batcher.locator("#stage-a [data-kind=gantt] canvas").nth(1)
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] * 0.3, "y": 6})
    expect(batcher.locator(READOUT)).to_contain_text("Request")
    canvas.click(position={"x": box["width"] * 0.3, "y": 6})
    batcher.mouse.move(0, 0)
    expect(batcher.locator(READOUT)).to_contain_text("decode")
    assert batcher.inner_text(READOUT).startswith("Request ")


def test_keys_walk_over_the_requests_and_zoom(batcher: Any) -> None:
    pixels = f"() => document.querySelector('{PICTURE}').toDataURL()"
    whole = batcher.evaluate(pixels)
    batcher.focus("[data-kind=gantt] .cells")
    batcher.keyboard.press("+")
    assert batcher.evaluate(pixels) != whole
    batcher.keyboard.press("0")
    assert batcher.evaluate(pixels) == whole
    batcher.keyboard.press("ArrowDown")
    assert batcher.inner_text(READOUT).startswith("Request 0:")
    batcher.keyboard.press("Escape")
    assert not batcher.inner_text(READOUT).startswith("Request")


def test_a_decode_shows_its_tokens_when_they_are_far_enough_apart(batcher: Any) -> None:
    """Gaps in the row of slot 0, counted along one line of pixels; zoomed in there is one for every iteration."""
    gaps = f"""() => {{
      const e = document.querySelector('{PICTURE}');
      const line = e.getContext('2d').getImageData(0, 4 * devicePixelRatio, e.width, 1).data;
      const alpha = line.filter((_, i) => i % 4 === 3);
      return alpha.filter((one, i) => !one && alpha[i - 1]).length;
    }}"""
    batcher.focus("[data-kind=gantt] .cells")
    whole = batcher.evaluate(gaps)
    for _ in range(6):
        batcher.keyboard.press("+")
    near = batcher.evaluate(gaps)
    batcher.keyboard.press("+")
    assert near > 2 * whole and 0.3 * near < batcher.evaluate(gaps) < 0.8 * near  # half as much time is on the screen


def test_a_slider_moves_the_percentiles(batcher: Any) -> None:
    before = tiles(batcher)
    batcher.focus("#r-rate")
    redrawn(batcher, lambda: batcher.keyboard.press("End"))
    after = tiles(batcher)
    assert after["TTFT p50"] != before["TTFT p50"] and after["Goodput"] != before["Goodput"]


def test_a_setting_that_contradicts_another_says_so_and_the_picture_stays(batcher: Any) -> None:
    before = tiles(batcher)
    batcher.fill("#c-budget", "64")
    batcher.press("#c-budget", "Tab")
    batcher.wait_for_timeout(300)
    batcher.select_option("#c-hardware", "T4")
    expect(batcher.locator("#status")).to_contain_text("does not fit on T4")
    assert set(tiles(batcher)) == set(before)


def test_why_a_request_waited_is_told(batcher: Any) -> None:
    redrawn(batcher, lambda: batcher.click("[data-preset=static]"))
    batcher.fill("#c-request", "60")
    redrawn(batcher, lambda: batcher.press("#c-request", "Tab"))
    expect(batcher.locator("#below")).to_contain_text("Why did request 60 wait?")
    expect(batcher.locator("#below")).to_contain_text("waits in the queue while")


def test_a_preset_that_stands_beside_another_opens_both(batcher: Any) -> None:
    batcher.click("[data-preset=apart]")
    expect(batcher.locator("#stage-b .caption")).to_contain_text("2 × H200")
    expect(batcher.locator("#stage-a .caption")).to_contain_text("1 (prompts) + 1 (decodes)")
    assert batcher.locator("[data-preset=together]").count() == 0  # it is there only beside the other
    batcher.select_option("#c-rows", "requests")
    expect(batcher.locator("#stage-a .legend")).to_contain_text("transfer")
    batcher.reload()
    live(batcher)
    expect(batcher.locator("#stage-b .caption")).to_contain_text("2 × H200")
    expect(batcher.locator("#stage-a .legend")).to_contain_text("transfer")


def test_the_front_page_is_the_batcher_with_the_list_of_studios_under_it(page_watch: Open) -> None:
    page = live(page_watch(""))
    assert page.inner_text("h1") == "Batcher"
    listed = [link.get_attribute("href") for link in page.locator(".studios a").all()]
    assert listed == ["batcher/", "kv-desk/", "planner/"]
    assert page.locator("#stage-a canvas").first.bounding_box()["y"] < page.locator(".studios").bounding_box()["y"]
    redrawn(page, lambda: page.click("[data-preset=flood]"))
    assert "flood" in page.locator("[aria-pressed=true][data-preset]").get_attribute("data-preset")


@pytest.mark.parametrize(("change", "said"), [
    ({"prefills": "1", "guesses": "2"}, "go without"),
    ({"guesses": "4", "slots": "64", "budget": "128"}, "each sequence wants 5"),
    ({"arrivals": "closed", "gate": "token_bucket"}, "closed loop"),
])  # fmt: skip
def test_what_is_not_simulated_together_says_so(page_watch: Open, change: dict[str, str], said: str) -> None:
    query = "&".join(f"{key}={value}" for key, value in change.items())
    page = live(page_watch(f"batcher/#{query}"))
    expect(page.locator("#status")).to_contain_text(said)
    assert page.locator("#stage-a canvas").first.is_visible()
