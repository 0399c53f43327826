"""When something is refused: a named error, a way out, and the picture stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from studio_page import canvases, expected, live, redrawn, tiles

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
DESK = "kv-desk/"
LIVE = "html[data-live]"
NOISE = ("404", "ERR_FAILED", "WebAssembly", "wasm", "MIME type")


def refuse(pattern: str) -> Callable[[Any], None]:
    """Answer these requests with 404."""
    return lambda context: context.route(pattern, lambda route: route.fulfill(status=404))


def picture(page: Any) -> None:
    """The baked picture and its numbers are on the screen."""
    assert page.locator("#stage-a canvas").count() >= 3
    assert page.locator("#tiles-a .figure").nth(2).inner_text() == "204"


@pytest.mark.parametrize(("what", "says"), [
    pytest.param(refuse("**/worker.mjs"), "WorkerError", id="no worker"),
    pytest.param(refuse("**/bundle.json"), "MissingFile", id="no receipts"),
])
def test_a_failed_boot_is_named_and_the_picture_stays(page_watch: Open, what: Callable[[Any], None], says: str) -> None:
    """Case 27: a blocked worker."""
    page = page_watch(DESK, prepare=what, allow=NOISE)
    page.wait_for_selector("#status.bad", timeout=40_000)
    text = page.inner_text("#status span")
    assert says.lower() in text.lower() and "The picture stays" in text, text
    picture(page)
    assert page.is_visible("#retry")
    page.context.unroute_all()
    page.click("#retry")
    page.wait_for_selector(LIVE, timeout=30_000)
    assert not page.is_visible("#retry") and "Live" in page.inner_text("#status")


def test_a_refused_constructor_is_a_named_error_too(page_watch: Open) -> None:
    no_worker = "window.Worker = class { constructor() { throw new DOMException('workers are off', 'SecurityError') } }"
    page = page_watch(DESK, prepare=lambda context: context.add_init_script(no_worker))
    page.wait_for_selector("#status.bad")
    assert "SecurityError" in page.inner_text("#status") and "workers are off" in page.inner_text("#status")
    picture(page)


def test_stop_ends_a_long_call_and_python_comes_back(desk: Any) -> None:
    page = desk
    page.evaluate("document.querySelector('#stop').hidden = false")
    page.click("#stop")
    page.wait_for_selector("#status:has-text('Live')", timeout=30_000)
    page.click("[data-preset=coarse]")
    page.wait_for_selector("#tiles-a .figure:text-is('32')", timeout=10_000)
    assert page.is_hidden("#status.bad")


POISON = """() => {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    return post.call(this, message.method === "drop" ? { ...message, file: { length: 2 ** 40 } } : message, ...rest);
  };
}"""


def test_a_call_that_throws_ends_python_and_retry_starts_another(page_watch: Open) -> None:
    """What comes back is a reply; what is thrown, as a full stack is, leaves an interpreter that answers nothing."""
    page = live(page_watch(DESK, prepare=lambda context: context.add_init_script(f"({POISON})()")))
    before, shown = canvases(page), tiles(page)
    page.set_input_files("#file", {"name": "deep.json", "mimeType": "application/json", "buffer": b"[[["})
    expect(page.locator("#status.bad")).to_contain_text("(in drop)")
    page.wait_for_timeout(300)
    told = page.inner_text("#status span")
    assert "Error (in drop): " in told and "Retry" in told and told.endswith("The picture stays."), told
    assert canvases(page) == before and tiles(page) == shown
    redrawn(page, lambda: page.click("#retry"))
    expect(page.locator("#status")).to_contain_text("Live")
    page.focus("#r-conversations")
    redrawn(page, lambda: page.keyboard.press("ArrowRight"))
    assert tiles(page) == expected({"conversations": "9"})


def test_a_module_that_throws_nothing_is_named(page_watch: Open) -> None:
    def broken(context: Any) -> None:
        context.route("**/pyodide.asm.mjs", lambda r: r.fulfill(body="throw undefined", content_type="text/javascript"))

    page = page_watch(DESK, prepare=broken, service_workers="block")
    expect(page.locator("#status.bad")).to_contain_text("pyodide.asm.mjs did not load: it is damaged", timeout=30_000)


@pytest.mark.parametrize(("address", "says", "again"), [
    ("b.pool=1", "B: request 0 needs 63 blocks of 16 tokens and the pool has 1", False),
    ("b.dtype=zzz", "B: dtype='zzz' is not offered", False),
])
def test_what_is_wrong_with_b_is_said_of_b(page_watch: Open, address: str, says: str, again: bool) -> None:
    page = live(page_watch(f"{DESK}#{address}"))
    told = page.inner_text("#status span")
    assert says in told and told.endswith("B has no picture yet."), told
    assert page.is_visible("#retry") == again
    assert page.locator("#controls .problem:not(:empty)").count() == 0, "these are A's controls"
    redrawn(page, lambda: page.click("[data-preset=coarse]"))
    assert page.inner_text("#status span") == told, "A's picture does not mend B"
    page.click("[data-side=b]")
    assert page.locator("#controls .problem:not(:empty)").count() == ("dtype" in address)
    redrawn(page, lambda: page.click("[data-preset=coarse]"))
    expect(page.locator("#status")).to_contain_text("Live")
    assert tiles(page, "#tiles-b") == tiles(page)


@pytest.mark.parametrize(("address", "says"), [
    ("t=999999999", ("t=999999999", "0 to 249 decode steps")),
    ("t=-4", ("t=-4", "0 to 249 decode steps")),
    ("t=NaN&theme=pink", ("t=NaN", "theme=pink", "light or dark")),
    (f"t={'9' * 3000}", (f"t={'9' * 22}… is not possible",)),
])
def test_a_clock_or_theme_that_cannot_be_is_named(page_watch: Open, address: str, says: tuple[str, ...]) -> None:
    page = live(page_watch(f"{DESK}#{address}"))
    told = page.inner_text("#status.bad span")
    assert all(part in told for part in says) and told.endswith("The picture stays."), told
    assert not page.is_visible("#retry")
    assert page.inner_text("#tick").startswith("248 / 249") and tiles(page) == expected({})
    redrawn(page, lambda: page.click("[data-preset=coarse]"))
    expect(page.locator("#status")).to_contain_text("Live")


def test_a_clock_beyond_the_first_preset_waits_for_its_own_picture(page_watch: Open) -> None:
    state = "conversations=64&prefix=1024&private=904&pool=10240"
    page = live(page_watch(f"{DESK}#{state}&t=600"))
    page.wait_for_timeout(500)
    assert page.inner_text("#tick").startswith("600 / 653") and not page.is_visible("#status.bad")
    assert page.evaluate("location.hash").endswith("&t=600")


def test_a_very_long_value_keeps_the_page_in_its_width(page_watch: Open) -> None:
    for width in (1280, 360):
        page = page_watch(f"{DESK}#pool={'9' * 3000}", viewport={"width": width, "height": 800})
        live(page)
        expect(page.locator("#status.bad")).to_contain_text("pool=")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = "all => all.map(e => e.scrollWidth - e.clientWidth)"
        assert max(page.locator("#status span, .problem:not(:empty)").evaluate_all(wide)) <= 0


def test_a_bad_file_is_named_once_without_retry_and_can_be_chosen_again(desk: Any) -> None:
    for _ in range(2):
        desk.set_input_files("#file", {"name": "bad.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"})
        expect(desk.locator("#status.bad")).to_contain_text("bad.csv: ")
        assert desk.inner_text("#status span").count("bad.csv") == 1 and not desk.is_visible("#retry")
        assert desk.input_value("#file") == "", "else the same file would be no change"
        desk.evaluate("document.querySelector('#status span').textContent = ''")


WATCH = """() => {
  window.told = [];
  const note = () => told.push(document.querySelector("#status span").textContent);
  const watch = (line) => line && new MutationObserver(note).observe(line, { childList: true, subtree: true });
  addEventListener("DOMContentLoaded", () => watch(document.querySelector("#status")));
}"""


def test_a_file_chosen_while_python_starts_says_when_it_is_replayed(page_watch: Open) -> None:
    rows = "\n".join(f"{100 + i % 900},{50 + i % 300}" for i in range(60_000))
    page = page_watch(DESK, prepare=lambda context: context.add_init_script(f"({WATCH})()"))
    trace = f"prompt_tokens,output_tokens\n{rows}\n".encode()
    page.set_input_files("#file", {"name": "long.csv", "mimeType": "text/csv", "buffer": trace})
    page.wait_for_selector("#file-result:not([hidden])", timeout=60_000)
    told = page.evaluate("told")
    assert "Replaying long.csv …" in told[told.index("Live: the core runs in this tab.") :]
    assert page.inner_text("#status span").startswith("long.csv: 60,000 requests replayed.")
