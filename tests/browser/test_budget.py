"""Budgets in bytes: our own JavaScript per page, and what a first visit transfers until Python has drawn."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from studio_page import STUDIOS, live

from servelab.view.studio import studio

pytestmark = pytest.mark.browser
OWN = 60_000
CEILING = 114_000
UNTIL_LIVE = {False: 8_000_000, True: 13_000_000}
LINK = re.compile(r"""(?:from|import)\s*\(?\s*["'](\.{1,2}/[^"']+)["']""")
FAMILY = re.compile(r"""import\(`(\./[^`$]*)\$\{\w+\}([^`]*)`\)""")


def reachable(page: Path, site: Path) -> set[Path]:
    """Every file of ours that a page can load: its scripts, worker and service worker, and all that these import."""
    html = page.read_text()
    shown = re.findall(r'"(?:worker|sw)":"([^"]+)"', html) + re.findall(r'<script[^>]*src="([^"]+)"', html)
    found, seen = [(page.parent / url).resolve() for url in shown], set()
    while found:
        path = found.pop()
        if path in seen or re.search(r"/assets/(vendor|pyscript|runtime)-", path.as_posix()):
            continue
        seen.add(path)
        text = path.read_text()
        found += [(path.parent / name).resolve() for name in LINK.findall(text)]
        for folder, end in FAMILY.findall(text):
            found += (path.parent / folder).resolve().glob(f"*{end}")
    assert all(path.is_relative_to(site.resolve()) for path in seen)
    return seen


def pages(site: Path) -> Iterator[Path]:
    yield from (path for path in site.rglob("index.html") if "assets" not in path.parts)


def test_our_javascript_fits_its_ceiling_with_all_that_a_page_may_ever_load(dist: Path) -> None:
    """Dialogs, file results and the panels far down come on demand; together with the rest they stay under CEILING."""
    sizes = {
        page.relative_to(dist).as_posix(): sum(path.stat().st_size for path in reachable(page, folder))
        for folder in (dist / "site", *(dist / "spaces").iterdir())
        for page in pages(folder)
    }
    assert len(sizes) >= 4 and min(sizes.values()) > 1000
    assert {page: size for page, size in sizes.items() if size > CEILING} == {}


@pytest.mark.parametrize("path", ["", "receipts/", *(f"{name.replace('_', '-')}/" for name in STUDIOS)])
def test_our_javascript_fits_its_budget(page_watch: Callable[..., Any], dist: Path, path: str) -> None:
    """What the browser asks for by itself until the page is live, unminified."""
    page = page_watch(path, service_workers="block")
    if path.rstrip("/").replace("-", "_") in STUDIOS:
        live(page)
    page.wait_for_timeout(500)
    ours = {urlsplit(url).path.lstrip("/") for url in page.watch.requests if "/assets/shell-" in url}
    scripts = [dist / "site" / name for name in ours if name.endswith((".mjs", ".js"))]
    assert scripts and sum(script.stat().st_size for script in scripts) <= OWN


@pytest.mark.parametrize("name", STUDIOS)
def test_a_first_visit_fits_its_budget(page_watch: Callable[..., Any], dist: Path, name: str) -> None:
    """What the browser asked for until live, each file as gzip or as stored, against the files themselves."""
    slug = name.replace("_", "-")
    page = live(page_watch(f"{slug}/", service_workers="block"))
    paths = {urlsplit(url).path.lstrip("/") for url in page.watch.requests if not url.startswith(("blob:", "data:"))}
    files = [dist / "site" / (path if "." in path else f"{path}index.html") for path in paths]
    stored = (".gz", ".zip", ".whl", ".png")
    total = sum(
        path.stat().st_size if path.suffix in stored else len(gzip.compress(path.read_bytes(), 9)) for path in files
    )
    assert any("wasm" in path.name for path in files) and total > 1_000_000
    assert total <= UNTIL_LIVE["numpy" in studio(name).NEEDS]
