"""axe finds nothing against WCAG 2.2 A and AA: every page and every state of a studio, two themes, two widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from studio_page import DESKTOP, PHONE, redrawn

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
Axe = Callable[..., list[tuple[str, list[str]]]]
SIZES = {"desktop": DESKTOP, "phone": PHONE}
BOTH = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
EACH = [("desktop", "light"), ("phone", "dark")]
BAD = {"name": "w.csv", "mimeType": "text/csv", "buffer": b"cat,dog\n1,2\n"}
GOOD = b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n"


def press(page: Any, selector: str) -> None:
    """Click what may be off the screen."""
    page.locator(selector).first.evaluate("e => e.click()")


def all_panels(page: Any) -> None:
    """Bring every lazy panel to the screen once."""
    for section in page.locator(".panel").all():
        section.scroll_into_view_if_needed()
    page.wait_for_selector("[data-kind=plot] svg")


def address(page: Any, state: str) -> None:
    page.evaluate("state => { location.hash = state; }", state)


def states(page: Any) -> Iterator[tuple[str, str]]:
    """Bring a live studio page into one state after the other; yields each one's name and where it is new."""
    all_panels(page)
    yield "opening", "html"
    redrawn(page, lambda: address(page, "#compare=1&b.block_size=64"))
    yield "compare", "main"
    address(page, "#block_size=-3&pool=banana")
    page.wait_for_selector("#p-pool:not(:empty)", state="attached")
    for summary in page.locator("summary").all():
        summary.evaluate("e => { e.parentElement.open = true; }")
    yield "errors and help beside controls", "#controls"
    redrawn(page, lambda: address(page, "#"))
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": GOOD})
    page.wait_for_selector("#file-result .panel")
    page.set_input_files("#file", BAD)
    page.wait_for_selector("#status.bad")
    yield "file", "#file-result"
    yield "error", "header.top"
    for button, name in (("[data-dialog=help]", "help"), ("[data-act=export]", "export"), (".receipt", "verify")):
        press(page, button)
        page.wait_for_selector(f"#{name}[open]")
        if name == "verify":
            page.wait_for_selector("#verify [data-check=again][data-ok=true]", timeout=20_000)
        yield name, f"#{name}"
        page.keyboard.press("Escape")


def test_axe_finds_nothing_in_any_state_of_a_studio(desk: Any, axe: Axe) -> None:
    """The whole page in both themes at both widths; each other state once per theme and once per width."""
    found, wide = {}, []
    for name, place in states(desk):
        for size, scheme in BOTH if name == "opening" else EACH:
            desk.set_viewport_size(SIZES[size])
            desk.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            desk.evaluate("phone => document.documentElement.classList.toggle('sheet', phone)", place == "#controls")
            found[name, size, scheme] = axe(desk, place)
            if desk.evaluate("document.documentElement.scrollWidth") > SIZES[size]["width"]:
                wide.append((name, size))
    assert len(found) == 4 + 7 * 2
    assert {where: problems for where, problems in found.items() if problems} == {}
    assert wide == []


def test_axe_finds_nothing_on_the_other_pages(page_watch: Open, axe: Axe, site: str) -> None:
    page = page_watch("")
    found = {}

    def look(name: str, place: str = "html") -> None:
        for size, scheme in BOTH:
            page.set_viewport_size(SIZES[size])
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found[name, size, scheme] = axe(page, place)

    look("index")
    page.goto(f"{site}receipts/")
    look("receipts")
    page.locator("button[data-claim]").first.click()
    page.wait_for_selector("#verify [data-check=again]:is([data-ok=true], [data-ok=null])", timeout=30_000)
    look("receipts, verify", "#verify")
    assert {where: problems for where, problems in found.items() if problems} == {}


def test_axe_finds_nothing_when_python_cannot_start(page_watch: Open, axe: Axe) -> None:
    page = page_watch(
        "kv-desk/",
        prepare=lambda context: context.route("**/*.wasm.gz", lambda route: route.fulfill(status=404)),
        allow=("404",),
        service_workers="block",
    )
    page.wait_for_selector("#status.bad", timeout=30_000)
    assert axe(page) == []


def test_the_rules_see_something(page_watch: Open, axe: Axe) -> None:
    """The same rules on a page with two known faults, so that silence means something."""
    page = page_watch("")
    page.evaluate("""() => {
      document.querySelector("main").append(Object.assign(document.createElement("img"), {src: "data:,"}));
      document.querySelector("h1 + p").style.color = "#bbb";
    }""")
    assert {rule for rule, _ in axe(page)} >= {"image-alt", "color-contrast"}


def test_keys_reach_everything_in_reading_order_and_focus_is_seen(desk: Any) -> None:
    """Tab walks down the page; whatever has the focus shows an outline and is on the screen."""
    desk.evaluate("document.activeElement.blur(), scrollTo(0, 0), document.querySelector('.skip').focus()")
    look = """() => {
      const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
      const order = [...document.querySelectorAll("*")].indexOf(e);
      const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
      const names = [e.getAttribute("aria-label"), e.labels?.[0]?.textContent, e.textContent, e.alt, e.title];
      const inside = box.bottom > 0 && box.top < innerHeight && box.width > 0;
      return {order, seen, inside, id: e.id, name: names.find(text => text?.trim()) ?? ""};
    }"""
    stops = [desk.evaluate(look)]
    for _ in range(60):
        desk.keyboard.press("Tab")
        stop = desk.evaluate(look)
        if stop["order"] <= stops[-1]["order"]:
            break
        stops.append(stop)
    assert len(stops) > 35, [stop["name"] for stop in stops]
    assert [stop for stop in stops if not (stop["seen"] and stop["inside"] and stop["name"])] == []
    ids = [stop["id"] for stop in stops]
    assert ids.index("compare") < ids.index("c-block_size") < ids.index("r-block_size") < ids.index("scrub")


@pytest.mark.parametrize("key", ["conversations", "prefix", "private", "turns", "pool"])
def test_a_slider_obeys_home_end_and_arrows(desk: Any, key: str) -> None:
    """Each key goes where the ARIA pattern says, and the field shows the number that the slider stands for."""
    spec = next(c for c in desk.evaluate("JSON.parse(document.querySelector('#config').textContent).controls")
                if c["key"] == key)  # fmt: skip
    desk.focus(f"#r-{key}")
    field = desk.locator(f"#c-{key}")
    for press_, value in (("Home", spec["min"]), ("End", spec["max"])):
        desk.keyboard.press(press_)
        assert float(field.input_value()) == value
    desk.keyboard.press("ArrowLeft")
    assert float(field.input_value()) < spec["max"]
    desk.keyboard.press("ArrowRight")
    assert float(field.input_value()) == spec["max"]
    assert desk.get_attribute(f"#r-{key}", "aria-valuetext").startswith(field.input_value())
    desk.evaluate("location.hash = '#'")
