"""A studio page: the picture before Python, the same picture from its address, the clock, exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
LIVE = "html[data-live]"
DESK = "kv-desk/"


def live(page: Any) -> Any:
    page.wait_for_selector(LIVE, timeout=30_000)
    return page


def tile(page: Any, title: str, side: str = "a") -> str:
    """The number that a tile shows."""
    return str(
        page.locator(f"#tiles-{side} .tile", has=page.get_by_text(title, exact=True)).locator(".figure").inner_text()
    )


def stage(page: Any) -> str:
    """A fingerprint of the pixels on A's stage."""
    return str(
        page.evaluate("[...document.querySelectorAll('#stage-a canvas[role=img]')].map(c => c.toDataURL()).join()")
    )


def settled(page: Any) -> None:
    """Wait until the newest state is on the screen."""
    page.wait_for_timeout(700)


def test_the_picture_and_its_numbers_are_there_without_python(page_watch: Open) -> None:
    """pyodide#1587: nobody waits for a runtime to see something."""
    page = page_watch(
        DESK, prepare=lambda context: context.route("**/worker.mjs", lambda route: route.abort()), allow=("ERR_FAILED",)
    )
    page.wait_for_selector("#stage-a canvas")
    assert [tile(page, name) for name in ("Preallocated", "Paged", "Shared")] == ["504", "428", "204"]
    page.click("[data-preset=coarse]")
    page.wait_for_function("() => location.hash.includes('block_size=256')")
    settled(page)
    assert tile(page, "Preallocated") == "32"


def test_without_javascript_the_numbers_and_the_prose_are_there(page_watch: Open) -> None:
    page = page_watch(DESK, java_script_enabled=False)
    text = page.inner_text("main")
    assert "504" in text and "428" in text and "204" in text and "with JavaScript, which is off" in text
    assert "In the room where eight conversations fitted" in text


def test_a_state_with_its_clock_and_b_comes_back_from_its_address(desk: Any, page_watch: Open) -> None:
    """catapult#3100: a permalink that does not restore the view."""
    first = desk
    first.fill("#c-private", "200")
    first.press("#c-private", "Enter")
    first.click("#compare")
    first.fill("#c-block_size", "64")
    first.press("#c-block_size", "Enter")
    for _ in range(3):
        first.click("[data-do=back]")
    first.wait_for_function("() => location.hash.includes('t=')")
    settled(first)
    hash_ = first.evaluate("location.hash")
    assert hash_.startswith("#private=200&compare=1&b.block_size=64&b.private=200&t=")
    again = live(page_watch(DESK + hash_, viewport={"width": 1280, "height": 800}))
    settled(again)
    assert again.inner_text("#tick") == first.inner_text("#tick")
    assert stage(again) == stage(first)
    for side in "ab":
        assert tile(again, "Shared", side) == tile(first, "Shared", side)
    assert again.evaluate("location.hash") == hash_


def test_defaults_and_unknown_keys_leave_the_address(desk: Any) -> None:
    page = desk
    page.evaluate("location.hash = '#block_size=16&colour=blue&dtype=fp8'")
    page.wait_for_function("() => location.hash === '#dtype=fp8'")
    assert page.input_value("#c-dtype") == "fp8"


def test_back_and_forward_walk_through_states(desk: Any) -> None:
    page = desk
    page.click("[data-preset=coarse]")
    settled(page)
    page.click("[data-preset=prefix]")
    settled(page)
    page.go_back()
    settled(page)
    assert (page.input_value("#c-block_size"), tile(page, "Preallocated")) == ("256", "32")
    page.go_forward()
    settled(page)
    assert (page.input_value("#c-block_size"), tile(page, "Preallocated")) == ("16", "504")


def test_the_clock_obeys_keys_and_ends_where_the_log_ends(desk: Any) -> None:
    page = desk
    page.keyboard.press("Backspace")
    page.wait_for_selector("text=/^0 \\/ /")
    page.keyboard.press(".")
    page.wait_for_timeout(100)
    first = int(page.input_value("#scrub"))
    assert first > 0
    page.keyboard.press(",")
    page.wait_for_timeout(100)
    assert page.input_value("#scrub") == "0"
    page.select_option("#speed", "4")
    page.keyboard.press("Space")
    assert page.get_attribute("[data-do=play]", "aria-label") == "Pause"
    page.wait_for_selector("[data-do=play][aria-label=Play]", timeout=10_000)
    assert page.input_value("#scrub") == page.get_attribute("#scrub", "max")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")


def test_reduced_motion_plays_from_event_to_event(desk: Any) -> None:
    page = desk
    page.emulate_media(reduced_motion="reduce")
    page.click("[data-do=restart]")
    events = []
    for _ in range(3):
        page.click("[data-do=forward]")
        events.append(page.input_value("#scrub"))
    page.click("[data-do=restart]")
    page.click("[data-do=play]")
    page.wait_for_timeout(1400)
    page.click("[data-do=play]")
    assert page.input_value("#scrub") in events, "one event a second, no sweep"


def test_a_block_that_is_pointed_at_is_told_and_shown_elsewhere(desk: Any) -> None:
    page = desk
    page.locator("#below [data-kind=tables]").scroll_into_view_if_needed()
    page.wait_for_selector("#below [data-kind=tables] canvas")
    pool = page.locator("#stage-a .panel").last
    pool.locator(".cells").focus()
    page.keyboard.press("ArrowRight")
    expect(pool.locator(".readout")).to_contain_text("Block 0: shared, ref count 8")
    page.keyboard.press("ArrowDown")
    expect(pool.locator(".readout")).to_contain_text("Block 2")
    marked = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v)"
    assert page.locator("#below [data-kind=tables] canvas").last.evaluate(marked)
    page.keyboard.press("Escape")
    assert not page.locator("#below [data-kind=tables] canvas").last.evaluate(marked)


def test_files_of_the_exports_hold_the_numbers_on_the_page(desk: Any) -> None:
    page = desk
    page.evaluate("location.hash = '#block_size=32'")
    settled(page)
    page.click("[data-act=export]")
    got = {}
    for what in ("png", "csv", "json", "perfetto"):
        with page.expect_download() as download:
            page.click(f"[data-export={what}]")
        got[what] = download.value.path().read_bytes()
    assert got["png"].startswith(b"\x89PNG\r\n")
    body = json.loads(got["json"])
    assert body["state"]["block_size"] == "32" and "conversations" in body["state"]
    assert "block_size,32" in got["csv"].decode()
    assert {e["ph"] for e in json.loads(got["perfetto"])["traceEvents"]} == {"C", "i"}
    page.click("[data-export=x-link]")
    page.wait_for_selector("text=Copied.")
    assert page.evaluate("navigator.clipboard.readText()").endswith("kv-desk/#block_size=32")
    assert "#block_size=32&amp;embed=1" in page.input_value("#x-embed")
