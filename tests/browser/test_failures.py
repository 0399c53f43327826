"""When something is refused: a named error, a way out, and the picture stays; offline after one visit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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


def test_stop_ends_a_long_call_and_python_comes_back(page_watch: Open) -> None:
    page = page_watch(DESK)
    page.wait_for_selector(LIVE, timeout=30_000)
    page.evaluate("document.querySelector('#stop').hidden = false")
    page.click("#stop")
    page.wait_for_selector("#status:has-text('Live')", timeout=30_000)
    page.click("[data-preset=coarse]")
    page.wait_for_selector("#tiles-a .figure:text-is('32')", timeout=10_000)


def test_the_network_may_go_after_the_first_visit(page_watch: Open) -> None:
    """shinylive#188: offline after first load."""
    page = page_watch(DESK, allow=("ERR_INTERNET_DISCONNECTED", "Failed to load"))
    page.wait_for_selector(LIVE, timeout=30_000)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    whole = """async () => {
        for (let i = 0; i < 150; i++) {
            const urls = [];
            for (const name of await caches.keys()) {
                urls.push(...(await (await caches.open(name)).keys()).map((request) => request.url));
            }
            const parts = ['snapshot', 'plotly', 'pyodide.asm.wasm', 'receipts/'];
            if (parts.every((part) => urls.some((url) => url.includes(part)))) return true;
            await new Promise((done) => setTimeout(done, 200));
        }
        return false;
    }"""
    assert page.evaluate(whole), "the offline copy is not whole after 30 s"
    page.context.set_offline(True)
    for path in (DESK, ""):
        page.goto(page.url.split("kv-desk")[0] + path)
    page.goto(page.url + DESK)
    page.wait_for_selector(LIVE, timeout=30_000)
    page.fill("#c-block_size", "32")
    page.press("#c-block_size", "Enter")
    page.wait_for_selector("#tiles-a .figure:text-is('256')", timeout=10_000)
