"""When something is refused: a named error, a way out, and the picture stays."""

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


def test_stop_ends_a_long_call_and_python_comes_back(desk: Any) -> None:
    page = desk
    page.evaluate("document.querySelector('#stop').hidden = false")
    page.click("#stop")
    page.wait_for_selector("#status:has-text('Live')", timeout=30_000)
    page.click("[data-preset=coarse]")
    page.wait_for_selector("#tiles-a .figure:text-is('32')", timeout=10_000)
