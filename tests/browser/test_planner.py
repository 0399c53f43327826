"""The Planner's page: sliders, the matrix, the heat map, explanations, and a config.json of the visitor's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from studio_page import DESKTOP, PHONE, expected, live, redrawn, tiles

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
CONFIG = json.dumps({
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16,
    "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 32000,
})  # fmt: skip


@pytest.fixture
def planner(page_watch: Open) -> Any:
    page = live(page_watch("planner/"))
    page.locator("#rest [data-kind=heat]").scroll_into_view_if_needed()
    expect(page.locator("#rest [data-kind=heat] .readout")).to_contain_text("Llama-3.1-70B on H200 SXM")
    page.evaluate("scrollTo(0, 0)")
    return page


def matrix(page: Any) -> Any:
    return page.locator("#side [data-kind=matrix]")


def names(page: Any) -> list[str]:
    found: list[str] = matrix(page).locator("tbody th").all_inner_texts()
    return found


def test_there_is_no_clock_and_a_phone_has_its_controls(planner: Any, page_watch: Open) -> None:
    assert not planner.locator("#transport").is_visible()
    page = page_watch("planner/", viewport=PHONE)
    page.click("#transport [data-act=sheet]")
    assert page.locator("#r-clients").is_visible()


def test_a_slider_moves_tiles_bars_and_what_rests(planner: Any) -> None:
    heard = planner.inner_text("#rest [data-kind=heat] .readout")
    redrawn(planner, lambda: planner.locator("#r-clients").fill("8"))
    assert tiles(planner) == expected({"clients": "256"}, name="planner")
    expect(planner.locator("#stage-a .caption").first).to_contain_text("of 256 clients wait")
    expect(planner.locator("#rest [data-kind=heat] .readout")).not_to_have_text(heard)
    planner.locator("#rest [data-kind=table]").scroll_into_view_if_needed()
    expect(planner.locator("#rest [data-kind=table]")).to_contain_text("256 clients, room for 84")


def test_a_bar_and_a_row_choose_their_plan(planner: Any) -> None:
    redrawn(planner, lambda: planner.click("#stage-a .bar-row button >> text=4 GPUs"))
    assert planner.input_value("#c-tp") == "4" and "tp=4" in planner.url
    redrawn(planner, lambda: matrix(planner).locator("text=2 × B200 SXM").click())
    assert planner.input_value("#c-device") == "B200 SXM"
    assert tiles(planner) == expected({"device": "B200 SXM", "tp": "2"}, name="planner")


def test_the_matrix_sorts_filters_and_keeps_what_is_pinned(planner: Any) -> None:
    planner.fill("[data-kind=matrix] input[type=search]", "h200")
    assert names(planner) == ["1 × H200 SXM", "2 × H200 SXM", "4 × H200 SXM", "8 × H200 SXM"]
    matrix(planner).locator("thead button >> text=TPOT").click()
    assert names(planner)[0] == "8 × H200 SXM" and matrix(planner).locator("[aria-sort=ascending]").count() == 1
    matrix(planner).locator("thead button >> text=TPOT").click()
    assert names(planner)[0] == "1 × H200 SXM" and matrix(planner).locator("[aria-sort=descending]").count() == 1
    matrix(planner).get_by_label("Keep 2 × H200 SXM on top").check()
    planner.fill("[data-kind=matrix] input[type=search]", "mi355x no")
    assert names(planner) == ["2 × H200 SXM"]
    redrawn(planner, lambda: planner.locator("#r-clients").fill("3"))
    planner.wait_for_timeout(400)
    assert names(planner) == ["2 × H200 SXM"]


def test_a_number_is_explained_with_its_values(planner: Any) -> None:
    planner.click("#tiles-a button[aria-label='Explain TPOT']")
    dialog = planner.locator("dialog[open]")
    expect(dialog).to_contain_text("TPOT = step + mix · (B − 1) · prompt / answer")
    expect(dialog).to_contain_text("41.7 ms")
    dialog.get_by_text("Close").click()
    redrawn(planner, lambda: planner.locator("#r-clients").fill("0"))
    planner.click("#tiles-a button[aria-label='Explain TPOT']")
    expect(planner.locator("dialog[open]")).to_contain_text(f"{tiles(planner)['TPOT']} ms")


def test_a_cell_of_the_heat_map_is_pointed_at_walked_to_and_planned(planner: Any) -> None:
    heat = planner.locator("#rest [data-kind=heat]")
    heat.scroll_into_view_if_needed()
    expect(heat.locator(".readout")).to_contain_text("Llama-3.1-70B on H200 SXM")
    heat.locator(".cells").focus()
    planner.keyboard.press("ArrowDown")
    expect(heat.locator(".readout")).not_to_contain_text("Llama-3.1-70B on")
    planner.keyboard.press("Escape")
    expect(heat.locator(".readout")).to_contain_text("Llama-3.1-70B on H200 SXM")
    box = heat.locator("canvas").nth(1).bounding_box()
    planner.mouse.click(box["x"] + 3, box["y"] + 3)
    expect(heat.locator(".readout")).to_contain_text("gpt2 on ")
    planner.mouse.move(box["x"] + 200, box["y"] + 200)
    expect(heat.locator(".readout")).to_contain_text("gpt2 on ")  # held
    redrawn(planner, lambda: heat.locator("button >> text=Plan this one").click())
    assert planner.input_value("#c-model") == "gpt2"


def test_a_dropped_config_is_planned_and_a_bad_one_changes_nothing(planner: Any) -> None:
    file = {"name": "tiny.json", "mimeType": "application/json", "buffer": CONFIG.encode()}
    redrawn(planner, lambda: planner.set_input_files("#file", file))
    assert planner.input_value("#c-model") == "yours"
    expect(planner.locator("#file-result")).to_contain_text("Parameters by part")
    shown = tiles(planner)
    planner.set_input_files("#file", file | {"buffer": b'{"model_type": "zeta"}'})
    expect(planner.locator("#status")).to_contain_text("tiny.json: config.json: model_type='zeta'")
    assert tiles(planner) == shown
    redrawn(planner, lambda: planner.locator("#r-clients").fill("8"))
    assert tiles(planner) != shown


def test_a_config_can_be_pasted(planner: Any) -> None:
    redrawn(planner, lambda: planner.evaluate(
        """text => {
          const data = new DataTransfer();
          data.setData("text", text);
          document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true}));
        }""", CONFIG,
    ))  # fmt: skip
    assert planner.input_value("#c-model") == "yours"
    expect(planner.locator("#file-result h2").first).to_have_text("pasted.json")


def test_a_link_to_a_dropped_model_says_what_to_do(page_watch: Open) -> None:
    page = live(page_watch("planner/#model=yours"))
    expect(page.locator("#status")).to_contain_text("this tab has no config.json of yours; drop one on the page")


def test_axe_finds_nothing_and_nothing_is_too_small_or_too_wide(planner: Any, axe: Callable[..., Any]) -> None:
    for section in planner.locator(".panel").all():
        section.scroll_into_view_if_needed()
    matrix(planner).get_by_label("Keep 1 × T4 on top").check()
    found = {}
    for name, size in {"desktop": DESKTOP, "phone": PHONE}.items():
        for scheme in ("light", "dark"):
            planner.set_viewport_size(size)
            planner.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found[name, scheme] = axe(planner, "html")
        assert planner.evaluate("document.documentElement.scrollWidth") <= size["width"]
        small = planner.evaluate("""() => [...document.querySelectorAll("button, input, select, summary")]
            .filter((e) => e.checkVisibility() && e.id !== "file")
            .map((e) => ({ html: e.outerHTML.slice(0, 80), size: e.getBoundingClientRect() }))
            .filter(({ size }) => size.width < 24 || size.height < 24).map(({ html }) => html)""")
        assert small == []
    planner.set_viewport_size(DESKTOP)
    planner.click("#tiles-a button[aria-label='Explain TTFT']")
    planner.wait_for_selector("dialog[open]")
    found["explanation"] = axe(planner, "dialog[open]")
    assert {where: problems for where, problems in found.items() if problems} == {}
