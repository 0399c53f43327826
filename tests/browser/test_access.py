"""For everybody: reflow at 320 px, targets of 24 px, keys instead of drags, no shift, themes; axe is in test_axe.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
DESK = "kv-desk/"
LIVE = "html[data-live]"
WIDTHS = {"desktop": (1280, 800), "phone": (360, 740)}


@pytest.mark.parametrize("path", ["", DESK, "receipts/"])
def test_pages_reflow_at_320_pixels(page_watch: Open, path: str) -> None:
    page = page_watch(path, viewport={"width": 320, "height": 640})
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("width", WIDTHS)
def test_targets_are_at_least_24_pixels(desk: Any, width: str) -> None:
    desk.set_viewport_size(dict(zip(("width", "height"), WIDTHS[width], strict=True)))
    small = desk.evaluate("""() => [...document.querySelectorAll('button, input, select, summary')]
        .filter((e) => e.checkVisibility() && e.id !== 'file')
        .map((e) => ({ html: e.outerHTML.slice(0, 80), size: e.getBoundingClientRect() }))
        .filter(({ size }) => size.width < 24 || size.height < 24).map(({ html }) => html)""")
    assert small == []


def test_the_first_tab_skips_to_the_content_and_focus_is_seen(page_watch: Open) -> None:
    page = page_watch(DESK)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid" and page.evaluate("document.activeElement.dataset.preset") == "prefix"


def test_nothing_moves_while_the_page_becomes_alive(page_watch: Open) -> None:
    watch = """new PerformanceObserver((list) => list.getEntries().filter((e) => !e.hadRecentInput).forEach((e) => {
        window.shift = (window.shift ?? 0) + e.value;
        window.moved = e.sources.map((s) => s.node?.outerHTML?.slice(0, 80));
    })).observe({ type: 'layout-shift', buffered: true })"""
    for width, height in WIDTHS.values():
        page = page_watch(
            DESK, viewport={"width": width, "height": height}, prepare=lambda context: context.add_init_script(watch)
        )
        page.wait_for_selector(LIVE, timeout=30_000)
        page.wait_for_timeout(300)
        assert page.evaluate("window.shift ?? 0") <= 0.02, page.evaluate("window.moved")


def test_the_theme_button_and_the_address_change_the_theme(page_watch: Open) -> None:
    page = page_watch(DESK + "?__theme=dark", color_scheme="light")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    page.wait_for_selector("[data-theme=dark]")
    dark = page.evaluate(background)
    page.click("[data-act=theme]")
    assert page.evaluate(background) != dark
    page.wait_for_timeout(500)
    assert "theme=light" in page.evaluate("location.hash")


def test_the_controls_are_a_sheet_on_a_phone(desk: Any) -> None:
    desk.set_viewport_size({"width": 360, "height": 740})
    assert not desk.is_visible("#controls")
    desk.click(".transport [data-act=sheet]")
    assert desk.is_visible("#c-block_size")
    desk.click("#controls [data-act=sheet]")
    assert not desk.is_visible("#controls")
