"""A served dist/site, one Chromium, and eyes on every page: no request leaves the origin, nothing logs an error.

`site` is the address that `build.py serve` answers on (it builds first when dist is older than its sources).
`page_watch` opens pages and judges them when the test ends:

    def test_it(page_watch):
        page = page_watch("kv-desk/", viewport={"width": 360, "height": 740})
        page = page_watch("kv-desk/", allow=(r"404",))    # errors that this test provokes
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="browser tests need the dev extra (playwright)")

ROOT = Path(__file__).parents[2]
DIST = Path(os.environ.get("SERVELAB_DIST") or ROOT / "dist")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PATIENCE = 30
RESET = """() => {
  document.querySelector("#file-result").hidden = true;
  document.documentElement.classList.remove("sheet");
  for (const open of document.querySelectorAll("dialog[open], details[open]")) open.open = false;
  document.querySelector("#speed").value = "1";
  document.activeElement?.blur();
  scrollTo(0, 0);
}"""
os.environ.setdefault("PW_EXPERIMENTAL_SERVICE_WORKER_NETWORK_EVENTS", "1")


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def chromium() -> str | None:
    """The distribution's Chromium, or None for the one that Playwright installs."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def stale(built: Path) -> bool:
    """Is there no built page, or has a source of it changed since?"""
    sources = ("core", "studios", "site/static", "site/templates", "site/runtime", "receipts")
    files = (path for folder in sources for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
    return not built.is_file() or built.stat().st_mtime < max(path.stat().st_mtime for path in files if path.is_file())


@pytest.fixture(scope="session")
def dist() -> Path:
    """The folder with site/ and spaces/, as new as its sources; SERVELAB_DIST names one that is taken as it is."""
    if not os.environ.get("SERVELAB_DIST") and stale(DIST / "site/index.html"):
        subprocess.run([sys.executable, "build.py", "build"], cwd=ROOT, check=True)
    return DIST


@pytest.fixture(scope="session")
def site(dist: Path) -> Iterator[str]:
    """Address of dist/site, with a slash at its end; SERVELAB_SITE names a server that runs already."""
    if running := os.environ.get("SERVELAB_SITE"):
        yield running
        return
    port = free_port()
    command = [sys.executable, "build.py", "serve", "--port", str(port), "--folder", str(dist / "site")]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    address = f"http://localhost:{port}/"
    try:
        for _ in range(PATIENCE * 10):
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except urllib.error.URLError:
                assert server.poll() is None, f"build.py serve ended with {server.returncode}"
                time.sleep(0.1)
        else:
            pytest.fail(f"build.py serve did not answer within {PATIENCE} s")
        yield address
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One headless Chromium for all tests."""
    with sync_api.sync_playwright() as play:
        chrome = play.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield chrome
        chrome.close()


class Watch:
    """What the pages of one context did: every request (workers' and service workers' too) and every error."""

    def __init__(self, context: Any, site: str, allow: tuple[str, ...]) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.allow = allow
        self.own = (site, f"blob:{site}", "data:", "blob:null")
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        context.on("weberror", lambda error: self.errors.append(str(error.error)))

    def judge(self) -> None:
        """Fail on a request to another origin and on an error that the test did not announce."""
        foreign = [url for url in self.requests if not url.startswith(self.own)]
        assert not foreign, f"requests left the origin: {foreign}"
        surprises = [text for text in self.errors if not any(re.search(known, text) for known in self.allow)]
        assert not surprises, f"errors on the console: {surprises}"


@pytest.fixture
def page_watch(browser: Any, site: str) -> Iterator[Callable[..., Any]]:
    """Open pages in fresh contexts: `page_watch(path, allow=(regex, …), **context options)`; see also `page.watch`."""
    watches: list[tuple[Any, Watch]] = []

    def open_page(
        path: str = "", *, allow: tuple[str, ...] = (), prepare: Callable[[Any], Any] | None = None, **options: Any
    ) -> Any:
        context = browser.new_context(**options)
        watch = Watch(context, site, allow)
        watches.append((context, watch))
        if prepare:
            prepare(context)
        page = context.new_page()
        page.watch = watch
        page.goto(site + path)
        return page

    yield open_page
    for context, _ in watches:
        context.close()
    for _, watch in watches:
        watch.judge()


@pytest.fixture(scope="session")
def booted(browser: Any, site: str) -> Iterator[Any]:
    """The KV desk with Python running, shared by every test that leaves it as it was: see `desk`."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    watch = Watch(context, site, ())
    page = context.new_page()
    page.watch = watch
    page.goto(f"{site}kv-desk/#")
    page.wait_for_selector("html[data-live]", timeout=60_000)
    yield page
    context.close()


@pytest.fixture
def desk(booted: Any) -> Iterator[Any]:
    """The shared page at its opening state; requests and errors are judged as with `page_watch`."""
    booted.set_viewport_size({"width": 1280, "height": 800})
    booted.emulate_media(color_scheme="light", reduced_motion="no-preference")
    booted.evaluate(RESET)
    for state in ("#block_size=128&pool=77", "#"):
        booted.evaluate("delete document.documentElement.dataset.picture")
        booted.evaluate("state => { location.hash = state; }", state)
        booted.wait_for_selector("html[data-picture]")
    yield booted
    booted.watch.judge()
    booted.watch.requests.clear()
    booted.watch.errors.clear()


@pytest.fixture(scope="session")
def axe() -> Callable[..., list[tuple[str, list[str]]]]:
    """axe(page): what axe finds against WCAG 2.2 A and AA, as (rule, elements); axe(page, selector): inside of that.

    Open shadow roots are looked into.
    """
    source = (ROOT / "site/node_modules/axe-core/axe.min.js").read_text()

    def violations(page: Any, inside: str = "html") -> list[tuple[str, list[str]]]:
        if not page.evaluate("'axe' in window"):
            page.evaluate(source)
        # preload: axe would write a <style> of its own, which a strict policy refuses and the console reports
        run = "([root, tags]) => axe.run(root, {runOnly: tags, preload: false, resultTypes: ['violations']})"
        found = page.evaluate(run, [inside, RULES])["violations"]
        return [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found]

    return violations
