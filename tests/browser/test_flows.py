"""What a visitor does, against what CPython says the page must then show; every request stays at the origin."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from studio_page import PHONE, ROOT, canvases, expected, live, redrawn, tiles

from servelab.kv import reuse
from servelab.kv.trace import read
from servelab.kv.waste import histograms, waste
from servelab.view.control import to_query
from servelab.view.studio import studio

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
KV = studio("kv_desk")
NONSENSE = "#block_size=-3&pool=banana&t=zzz&utm=x"


def address(page: Any) -> str:
    return str(page.evaluate("location.hash"))


def azure(rows: int = 300) -> bytes:
    """A trace in the publisher's columns, gzip."""
    rng = random.Random(1)
    lines = [f"2023-11-16 18:15:{i / 6:010.7f},{rng.randint(1, 4000)},{rng.randint(1, 900)}" for i in range(rows)]
    return gzip.compress("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines]).encode(), mtime=0)


def mooncake(rows: int = 200) -> bytes:
    """A trace with block hashes in which every prompt begins with one of five prefixes, JSON lines, gzip."""
    rng = random.Random(2)
    lines = []
    for i in range(rows):
        blocks = [10 * rng.randrange(5) + k for k in range(rng.randint(1, 8))] + [1000 + i]
        record = {"timestamp": 50 * i, "input_length": 512 * len(blocks) - 7, "output_length": 90, "hash_ids": blocks}
        lines.append(json.dumps(record))
    return gzip.compress("\n".join(lines).encode(), mtime=0)


@pytest.mark.parametrize("preset", KV.PRESETS)
def test_every_preset_shows_what_cpython_says(desk: Any, preset: str) -> None:
    redrawn(desk, lambda: desk.click(f"[data-preset={preset}]"))
    query = to_query(KV.PRESETS[preset].state)
    assert tiles(desk) == expected(query)
    assert dict(pair.split("=") for pair in address(desk)[1:].split("&") if pair) == query
    expect(desk.locator(f"[data-preset={preset}]")).to_have_attribute("aria-pressed", "true")
    assert desk.inner_text("#note") == KV.PRESETS[preset].note


def test_a_slider_changes_tiles_picture_and_address(desk: Any) -> None:
    before, hashed = canvases(desk), address(desk)
    desk.focus("#r-conversations")
    redrawn(desk, lambda: desk.keyboard.press("ArrowRight"))
    assert tiles(desk) == expected({"conversations": "9"}) != expected({})
    assert all(old != new for old, new in zip(before, canvases(desk), strict=True))
    desk.wait_for_function("() => location.hash === '#conversations=9'")
    assert hashed == "" and desk.input_value("#c-conversations") == "9"


def test_a_drag_ends_at_the_picture_of_its_last_value(desk: Any) -> None:
    """Calls that are overtaken are dropped; the newest never is."""
    slider = desk.locator("#r-private")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    desk.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    desk.mouse.down()
    for step in range(12):
        desk.mouse.move(box["x"] + 8 + 4 * step, box["y"] + box["height"] / 2)
    desk.mouse.up()
    last = desk.input_value("#c-private")
    for title, figure in expected({"private": last}).items():
        tile = desk.locator("#tiles-a .tile", has=desk.get_by_text(title, exact=True))
        expect(tile.locator(".figure")).to_have_text(figure)
    desk.wait_for_function("value => location.hash === `#private=${value}`", arg=last)


def test_reload_restores_state_tick_and_picture(page_watch: Open) -> None:
    page = live(page_watch("kv-desk/#block_size=32&focus=paged"))
    page.keyboard.press("Backspace")
    for _ in range(9):
        page.keyboard.press(".")
    page.wait_for_function("() => location.hash.includes('t=')")
    tick, pixels = int(page.input_value("#scrub")), canvases(page)
    assert tiles(page) == expected({"block_size": "32", "focus": "paged"}, tick)
    page.reload()
    live(page)
    assert int(page.input_value("#scrub")) == tick > 0
    page.wait_for_timeout(300)
    assert tiles(page) == expected({"block_size": "32", "focus": "paged"}, tick)
    assert canvases(page) == pixels
    assert address(page) == f"#block_size=32&focus=paged&t={tick}"


def test_back_undoes_the_clock_of_the_address(desk: Any) -> None:
    opening = desk.inner_text("#tick")
    desk.evaluate("location.hash = '#t=7'")
    expect(desk.locator("#tick")).to_contain_text("7 / ")
    desk.go_back()
    expect(desk.locator("#tick")).to_have_text(opening)


def test_nonsense_in_the_address_is_named_and_the_picture_stays(desk: Any) -> None:
    before, shown = canvases(desk), tiles(desk)
    desk.evaluate("nonsense => { location.hash = nonsense; }", NONSENSE)
    for key, value, allowed in (("block_size", "-3", "1 to 256 tokens"), ("pool", "banana", "1 to 16384 blocks")):
        expect(desk.locator(f"#p-{key}")).to_contain_text(repr(value))
        told = desk.inner_text(f"#p-{key}")
        assert allowed in told and "pick " in told
        assert desk.get_attribute(f"#c-{key}", "aria-invalid") == "true"
    assert canvases(desk) == before and tiles(desk) == shown
    redrawn(desk, lambda: desk.click("[data-preset=coarse]"))
    assert desk.locator("#controls [aria-invalid=true]").count() == 0 == len(desk.inner_text("#p-pool"))


def test_a_pool_smaller_than_one_request_is_named_and_the_picture_stays(desk: Any) -> None:
    before = canvases(desk)
    desk.fill("#c-pool", "20")
    desk.press("#c-pool", "Enter")
    told = desk.locator("#controls .problem:not(:empty), #status.bad").first
    expect(told).to_contain_text("the pool has 20")
    expect(told).to_contain_text("use a pool of at least 63")
    assert canvases(desk) == before
    desk.fill("#c-pool", "504")
    redrawn(desk, lambda: desk.press("#c-pool", "Enter"))
    assert tiles(desk) == expected({})
    expect(desk.locator("#controls .problem:not(:empty), #status.bad")).to_have_count(0)


def test_two_states_share_one_clock(desk: Any) -> None:
    redrawn(desk, lambda: desk.click("#compare"))
    desk.fill("#c-block_size", "64")
    redrawn(desk, lambda: desk.press("#c-block_size", "Enter"))
    desk.focus("#scrub")
    for tick in (0, 120):
        desk.locator("#scrub").evaluate("(e, tick) => { e.value = tick; e.dispatchEvent(new Event('input')); }", tick)
        desk.wait_for_timeout(100)
        assert tiles(desk) == expected({}, tick)
        assert tiles(desk, "#tiles-b") == expected({"block_size": "64"}, tick)
    desk.wait_for_function("() => location.hash === '#compare=1&b.block_size=64&t=120'")
    desk.click("#compare")
    assert not desk.is_visible("#stage-b")


def test_dropped_traces_are_replayed_as_cpython_does(desk: Any) -> None:
    before, shown = canvases(desk), tiles(desk)
    desk.set_input_files("#file", {"name": "a.csv.gz", "mimeType": "application/gzip", "buffer": azure()})
    expect(desk.locator("#file-result h2").first).to_have_text("a.csv.gz", timeout=20_000)
    slots = waste(histograms(read(azure(), "a.csv.gz")), 16)
    row = desk.locator("#file-below tr", has=desk.get_by_role("rowheader", name="16", exact=True))
    names = ("at_completion", "prompts_only", "over_decode_steps")
    assert row.locator("td").all_inner_texts()[:3] == [f"{slots[name].percent:.3f}" for name in names]

    desk.set_input_files("#file", {"name": "m.jsonl.gz", "mimeType": "application/gzip", "buffer": mooncake()})
    expect(desk.locator("#file-result h2").first).to_have_text("m.jsonl.gz", timeout=20_000)
    hits = reuse.distances(read(mooncake(), "m.jsonl.gz"), (500,)).at(None)
    row = desk.locator("#file-below tr", has=desk.get_by_role("rowheader", name="infinite", exact=True))
    assert row.locator("td").first.inner_text() == f"{hits.blocks:,}"

    wrong = gzip.decompress(azure(5)).replace(b",", b";", 4).splitlines()
    wrong = [*gzip.decompress(azure(5)).splitlines()[:3], b"2023-11-16 18:15:59,12,many", wrong[-1]]
    desk.set_input_files("#file", {"name": "w.csv", "mimeType": "text/csv", "buffer": b"\n".join(wrong)})
    said = desk.locator("#status")
    for words in ("w.csv", "line 4", "GeneratedTokens", "many", "repair or drop the row"):
        expect(said).to_contain_text(words)
    assert canvases(desk) == before and tiles(desk) == shown
    assert desk.inner_text("#file-result h2 >> nth=0") == "m.jsonl.gz", "the last good file stays"


def test_embed_shows_the_picture_and_its_numbers_only(desk: Any) -> None:
    page = desk
    redrawn(page, lambda: page.evaluate("location.hash = '#block_size=32&embed=1'"))
    assert tiles(page) == expected({"block_size": "32"}) and page.is_visible("#stage-a canvas")
    assert not page.is_visible("article.prose") and not page.is_visible("footer")
    assert "embed=1" in address(page)


def test_a_phone_has_everything(page_watch: Open) -> None:
    page = live(page_watch("kv-desk/", viewport=PHONE, has_touch=True, is_mobile=True))
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator("[data-act=sheet]:visible").tap()
    slider = page.locator("#r-conversations")
    slider.scroll_into_view_if_needed()
    slider.focus()
    redrawn(page, lambda: page.keyboard.press("ArrowRight"))
    assert tiles(page) == expected({"conversations": "9"})
    assert page.locator("#stage-a canvas[role=img]").first.evaluate("c => c.width > 200 && c.height > 100")
    page.locator("#controls [data-act=sheet]").tap()
    assert not page.is_visible("#controls")


def test_a_tour_of_the_site_stays_at_its_origin(page_watch: Open, site: str) -> None:
    """Every page, every dialog, the editor and every export; `page_watch` judges requests and console."""
    page = page_watch("")
    page.click(".studios a[href*=kv-desk]")
    live(page)
    for section in page.locator(".panel").all():
        section.scroll_into_view_if_needed()
    page.wait_for_selector("[data-kind=plot] .main-svg, [data-kind=plot] svg")
    page.locator("#tiles-a .receipt").first.click()
    page.wait_for_selector("[data-check=again][data-ok=true]", timeout=30_000)
    page.keyboard.press("Escape")
    page.click("[data-act=export]")
    for what in ("csv", "json", "perfetto", "png"):
        with page.expect_download():
            page.click(f"[data-export={what}]")
    page.keyboard.press("Escape")
    page.click("[data-act=code]")
    cell = page.frame_locator("#code iframe")
    cell.locator("#run:not([disabled])").click(timeout=60_000)
    expect(cell.locator("#status")).to_contain_text("Finished", timeout=60_000)
    page.keyboard.press("Escape")
    page.goto(f"{site}receipts/")
    page.wait_for_load_state("networkidle")
    kinds = ("worker.mjs", "plotly", "snapshot", "pyscript", "attestation.json", "precache")
    asked = page.watch.requests
    for _ in range(100):  # the offline copy comes when all is quiet
        if any("precache" in url for url in asked):
            break
        page.wait_for_timeout(100)
    assert [kind for kind in kinds if not any(kind in url for url in asked)] == []
    assert (ROOT / "receipts/attestation.json").is_file() and len(asked) > 50
