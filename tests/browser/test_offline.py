"""After one visit the host may vanish; and a Space's folder works from wherever it is put. (shinylive#188)"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conftest import Watch
from studio_page import expected, live, redrawn, tiles

from servelab.build.serve import Server, start

pytestmark = pytest.mark.browser
Open = Callable[..., Any]

COPIED = """async list => {
  const {core, rest} = await (await fetch(list)).json();
  const at = new URL(list, location.href).href.replace(/assets\\/.*/, "");
  const wanted = [...core, ...rest].map(url => new URL(url, at).href);
  for (let left = wanted, i = 0; i < 100; i++) {
    const kept = new Set();
    for (const name of await caches.keys()) for (const r of await (await caches.open(name)).keys()) kept.add(r.url);
    left = left.filter(url => !kept.has(url));
    if (!left.length) return wanted.length;
    await new Promise(done => setTimeout(done, 200));
  }
  return 0;
}"""


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server in this process, so that a test can stop it."""
    server = start(folder, 0)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def visit(browser: Any, address: str, path: str = "", gone: bool = False) -> Iterator[Any]:
    """A page that is judged as `page_watch` does, on any address; `gone`: its host will not answer all the time."""
    context = browser.new_context()
    watch = Watch(context, address, ("Failed to", "ERR_") if gone else ())
    page = context.new_page()
    page.goto(address + path)
    yield page
    context.close()
    watch.judge()


def copied(page: Any, folder: Path) -> int:
    """Wait for the offline copy; the number of files that it holds."""
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    name = next((folder / "assets").glob("precache-*.json")).name
    root = page.get_attribute('link[rel="stylesheet"]', "href").split("assets/")[0]
    return int(page.evaluate(COPIED, f"{root}assets/{name}"))


def works(page: Any) -> None:
    """Python answers a slider."""
    live(page)
    page.focus("#r-conversations")
    redrawn(page, lambda: page.keyboard.press("ArrowRight"))
    assert tiles(page) == expected({"conversations": "9"})
    redrawn(page, lambda: page.keyboard.press("ArrowLeft"))


def test_the_host_may_vanish_after_the_first_visit(browser: Any, dist: Path) -> None:
    with serving(dist / "site") as server, visit(browser, server.address, "kv-desk/", gone=True) as page:
        live(page)
        assert copied(page, dist / "site") > 30
        server.shutdown()
        server.server_close()
        page.reload()
        works(page)
        page.click("[data-preset=coarse]")
        page.locator("[data-kind=plot]").first.scroll_into_view_if_needed()
        page.wait_for_selector("[data-kind=plot] svg")
        page.locator("#tiles-a .tile").first.scroll_into_view_if_needed()
        redrawn(page, lambda: page.click("[data-preset=prefix]"))
        page.locator("#tiles-a .receipt").first.click()
        page.wait_for_selector("#verify [data-check=again][data-ok=true]", timeout=20_000)
        assert page.get_attribute("#verify [data-check=signed]", "data-ok") == "true"
        for path in ("", "receipts/"):
            page.goto(server.address + path)
            assert page.inner_text("h1")


def test_a_space_works_in_any_folder_and_offline(browser: Any, dist: Path, tmp_path: Path) -> None:
    shutil.copytree(dist / "spaces/kv-desk", tmp_path / "some/where")
    (tmp_path / "index.html").write_text("<!doctype html><title>another page</title>")
    with serving(tmp_path) as server, visit(browser, server.address, "some/where/", gone=True) as page:
        works(page)
        assert copied(page, tmp_path / "some/where") > 20
        asked = page.evaluate("performance.getEntriesByType('resource').map(e => new URL(e.name).pathname)")
        assert [path for path in asked if not path.startswith("/some/where/")] == []
        page.click("nav >> text=Receipts")
        page.wait_for_selector("[data-receipt=kv_pages]")
        page.go_back()
        page.context.set_offline(True)
        page.reload()
        works(page)


def test_a_new_build_replaces_the_offline_copy(browser: Any, dist: Path, tmp_path: Path) -> None:
    """Stale content is the danger of an offline copy: pages come from the network whenever there is one."""
    shutil.copytree(dist / "site", tmp_path / "site")
    page_file = tmp_path / "site/receipts/index.html"
    with serving(tmp_path / "site") as server, visit(browser, server.address, "receipts/") as page:
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.reload()
        page_file.write_text(page_file.read_text().replace("<h1>Receipts", "<h1>Newer receipts"))
        page.reload()
        assert page.inner_text("h1") == "Newer receipts"
