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


def test_a_phone_wraps_what_a_line_does_not_hold(page_watch: Open) -> None:
    page = page_watch(DESK, viewport={"width": 360, "height": 740})
    cut = "e => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1"
    page.wait_for_selector(LIVE, timeout=30_000)
    top = "document.querySelector('main').getBoundingClientRect().top"
    before = page.evaluate(top)
    for words in ("The picture is in the page; Python starts when it is idle.", "Reading a-day-of-traces.csv, 9 MB …"):
        page.locator("#more").evaluate("e => { e.textContent = ''; }")
        page.locator("#status span").first.evaluate("(e, words) => { e.textContent = words; }", words)
        assert page.evaluate(top) == before and not page.locator("#status span").first.evaluate(cut)
    for kind in ("tables", "tree"):
        panel = page.locator(f"#below [data-kind={kind}]")
        panel.scroll_into_view_if_needed()
        panel.locator("canvas").first.wait_for()
        page.wait_for_timeout(300)
        assert not panel.locator(".readout").evaluate(cut), panel.locator(".readout").inner_text()


def test_a_log_axis_has_whole_numbers_at_its_ticks(desk: Any) -> None:
    for name, ticks in (("block size", ["8", "16", "32", "64", "128", "256"]), ("pool, blocks", ["1,000", "10,000"])):
        plot = desk.locator("#below [data-kind=plot]", has_text=name)
        desk.locator("#below [data-kind=plot]").nth(1 if name == "block size" else 2).scroll_into_view_if_needed()
        plot.locator(".xtick").first.wait_for()
        assert set(ticks) <= set(plot.locator(".xtick").all_text_contents())
        shown = plot.locator(".xtick, .ytick").all_text_contents()
        assert len(shown) == len({*plot.locator(".xtick").all_text_contents()}) + plot.locator(".ytick").count()


def test_negative_numbers_have_a_minus_sign(desk: Any) -> None:
    module = "import(document.querySelector('script[src*=\"app.mjs\"]').src.replace('app.mjs', 'dom.mjs'))"
    assert desk.evaluate(f"{module}.then(({{ num }}) => num(-1234.56, 1))") == "−1,234.6"


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
