"""For everybody: axe in both themes and widths, reflow at 320 px, targets of 24 px, keys instead of drags, no shift."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
AXE = Path(__file__).parents[2] / "site/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
DESK = "kv-desk/"
LIVE = "html[data-live]"
WIDTHS = {"desktop": (1280, 800), "phone": (360, 740)}


def violations(page: Any) -> list[str]:
    """What axe finds, as 'rule: element'."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("tags => axe.run({runOnly: {type: 'tag', values: tags}})", RULES)
    return [f"{v['id']}: {node['target']}" for v in found["violations"] for node in v["nodes"]]


def scrolled(page: Any) -> None:
    """Bring every lazy panel to the screen once."""
    for section in page.locator(".panel").all():
        section.scroll_into_view_if_needed()
    page.wait_for_timeout(400)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", ["", DESK, "receipts/"])
def test_axe_finds_nothing(page_watch: Open, path: str, width: str, scheme: str) -> None:
    page = page_watch(path, viewport=dict(zip(("width", "height"), WIDTHS[width], strict=True)), color_scheme=scheme)
    if path == DESK:
        page.wait_for_selector(LIVE, timeout=30_000)
        scrolled(page)
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_dialogs_and_comparisons(page_watch: Open, scheme: str) -> None:
    page = page_watch(DESK + "#compare=1&b.block_size=-1", color_scheme=scheme)
    page.wait_for_selector(LIVE, timeout=30_000)
    page.click("[data-side=b]")
    assert violations(page) == []
    for button, name in (("[data-dialog=help]", "help"), ("[data-act=export]", "export"), (".receipt", "verify")):
        page.locator(button).first.click()
        page.wait_for_selector(f"#{name}[open]")
        page.wait_for_timeout(500)
        assert violations(page) == [], name
        page.keyboard.press("Escape")


@pytest.mark.parametrize("path", ["", DESK, "receipts/"])
def test_pages_reflow_at_320_pixels(page_watch: Open, path: str) -> None:
    page = page_watch(path, viewport={"width": 320, "height": 640})
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("width", WIDTHS)
def test_targets_are_at_least_24_pixels(page_watch: Open, width: str) -> None:
    page = page_watch(DESK, viewport=dict(zip(("width", "height"), WIDTHS[width], strict=True)))
    page.wait_for_selector(LIVE, timeout=30_000)
    small = page.evaluate("""() => [...document.querySelectorAll('button, input, select, summary')]
        .filter((e) => e.checkVisibility() && e.id !== 'file')
        .map((e) => ({ html: e.outerHTML.slice(0, 80), size: e.getBoundingClientRect() }))
        .filter(({ size }) => size.width < 24 || size.height < 24).map(({ html }) => html)""")
    assert small == []


def test_a_slider_has_keys_and_a_field(page_watch: Open) -> None:
    """WCAG 2.5.7: nothing needs a drag."""
    page = page_watch(DESK)
    page.wait_for_selector(LIVE, timeout=30_000)
    slider = page.locator("#r-block_size")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert page.input_value("#c-block_size") == "32" and slider.get_attribute("aria-valuetext") == "32 tokens"
    page.keyboard.press("Home")
    assert page.input_value("#c-block_size") == "1"
    page.keyboard.press("End")
    assert page.input_value("#c-block_size") == "256"


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


def test_the_controls_are_a_sheet_on_a_phone(page_watch: Open) -> None:
    page = page_watch(DESK, viewport={"width": 360, "height": 740})
    page.wait_for_selector(LIVE, timeout=30_000)
    assert not page.is_visible("#controls")
    page.click(".transport [data-act=sheet]")
    assert page.is_visible("#c-block_size")
    page.click("#controls [data-act=sheet]")
    assert not page.is_visible("#controls")
