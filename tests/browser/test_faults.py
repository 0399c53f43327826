"""Bytes that arrive wrong: each way has its own name, says what to do, and leaves the baked picture where it was.

Cases 24 and 27 of the house: a truncated download, one bad wasm byte, a snapshot that does not fit, a missing wheel.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from studio_page import LIVE, ROOT, canvases, expected, live, redrawn, tiles

from servelab.receipt.recompute import recompute
from servelab.receipt.schema import read

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
Change = Callable[[bytes], bytes]
NOISE = ("404", "ERR_", "[Ww]asm", "WebAssembly", "Failed to load")


def spoiled(**changes: Change | None) -> Callable[[Any], None]:
    """Serve files otherwise: part of a name → change of its bytes, None for 404. "__" stands for a dot."""

    def answer(change: Change | None, route: Any) -> None:
        if change is None:
            return route.fulfill(status=404, body="gone")
        reply = route.fetch()
        return route.fulfill(status=200, headers=reply.headers, body=change(reply.body()))

    def prepare(context: Any) -> None:
        for name, change in changes.items():
            context.route(f"**/runtime-*/*{name.replace('__', '.')}*", partial(answer, change))

    return prepare


def cut(data: bytes) -> bytes:
    """The first two thirds."""
    return data[: len(data) * 2 // 3]


def flipped(data: bytes) -> bytes:
    """One wrong byte in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :]


def changed(body: str, route: Any) -> None:
    """A route's answer."""
    route.fulfill(status=200, content_type="application/json", body=body)


def page_with(page_watch: Open, changes: dict[str, Change | None]) -> Any:
    return page_watch("kv-desk/", prepare=spoiled(**changes), allow=NOISE, service_workers="block")


@pytest.mark.parametrize(
    ("changes", "name", "about"),
    [
        pytest.param({"asm__wasm": cut}, "TruncatedDownload", "pyodide.asm.wasm", id="truncated wasm"),
        pytest.param({"asm__wasm": flipped}, "DamagedFile", "pyodide.asm.wasm", id="one wasm byte"),
        pytest.param({"asm__wasm": lambda _: b"<html>"}, "BrokenWasm|TruncatedDownload", "wasm", id="no wasm at all"),
        pytest.param({"asm__mjs": None}, "MissingFile", "pyodide.asm.mjs", id="no module"),
        pytest.param({"snapshot": None, "servelab-": None}, "MissingFile", "servelab-", id="no wheel"),
        pytest.param({"snapshot": None, "stdlib": cut}, "TruncatedDownload", "stdlib", id="truncated library"),
        pytest.param({"snapshot": None, "servelab-": flipped}, "", "", id="one wheel byte"),
    ],
)
def test_a_boot_that_cannot_succeed_is_named(
    page_watch: Open, changes: dict[str, Change | None], name: str, about: str
) -> None:
    page = page_with(page_watch, changes)
    page.wait_for_selector("#status.bad", timeout=40_000)
    said = page.inner_text("#status")
    assert any(one in said for one in name.split("|")) and about in said, said
    assert "The picture stays" in said and ("Reload" in said or "reload" in said or "try again" in said.lower()), said
    assert tiles(page) == expected({})
    assert len(canvases(page)) >= 3 and page.is_visible("#retry")


def test_trying_again_works_when_the_file_is_whole_again(page_watch: Open) -> None:
    page = page_with(page_watch, {"asm__wasm": flipped})
    page.wait_for_selector("#status.bad", timeout=40_000)
    page.context.unroute_all()
    page.click("#retry")
    page.wait_for_selector(LIVE, timeout=40_000)
    redrawn(page, lambda: page.click("[data-preset=coarse]"))
    assert tiles(page)["Preallocated"] == "32"


@pytest.mark.parametrize("change", [None, cut, flipped], ids=["404", "truncated", "one byte"])
def test_a_bad_snapshot_falls_back_to_the_files(page_watch: Open, change: Change | None) -> None:
    page = live(page_with(page_watch, {"snapshot": change}))
    assert "(precompiled)" in page.inner_text("#boot")
    page.focus("#r-conversations")
    redrawn(page, lambda: page.keyboard.press("ArrowRight"))
    assert tiles(page) == expected({"conversations": "9"})
    assert not page.is_visible("#status.bad")


def test_a_snapshot_of_another_build_falls_back_too(page_watch: Open, site: str) -> None:
    """The page's own digest of the interpreter's memory decides, not luck."""

    def other(context: Any) -> None:
        def answer(route: Any) -> None:
            reply = route.fetch()
            body = reply.text()
            digest = json.loads(body.split('id="config">')[1].split("</script>")[0])["runtime"]["snapshot"]["digest"]
            route.fulfill(status=200, headers=reply.headers, body=body.replace(digest, "0" * 64))

        context.route("**/kv-desk/", answer)

    page = live(page_watch("kv-desk/", prepare=other, service_workers="block"))
    assert "(precompiled)" in page.inner_text("#boot")


def test_one_digit_changed_in_any_receipt_is_named_on_the_receipts_page(page_watch: Open) -> None:
    """In every second receipt, then in the others: each that was changed is named, and none of those beside it."""
    paths = {path.parent.name: path for path in sorted((ROOT / "receipts").glob("*/*-*-*.json"))}
    page = page_watch("receipts/", service_workers="block")
    for turn in range(2):
        metrics = {kind: spoil(page, path) for kind, path in list(paths.items())[turn::2]}
        page.reload()
        page.click("[data-act=all]")
        whole = len(paths) - len(metrics)
        expect(page.locator("#status")).to_contain_text(f"{whole} of {len(paths)} receipts", timeout=90_000)
        page.unroute_all()
        for kind, path in paths.items():
            mine = kind in metrics
            section = page.locator(f"[data-receipt={kind}]")
            bytes_, again = section.locator("[data-check=unmodified]"), section.locator("[data-check=again]")
            expect(bytes_).to_have_attribute("data-ok", "false" if mine else "true")
            expect(section.locator("[data-check=signed]")).to_have_attribute("data-ok", "true")
            expect(again).to_have_attribute("data-ok", "false" if mine else "true")
            if mine:
                expect(bytes_).to_contain_text(f"{kind}/{path.name} was changed")
                expect(again).to_contain_text(metrics[kind])


def spoil(page: Any, path: Path) -> str:
    """Answer with a receipt in which one number is larger by one: its name."""
    receipt = json.loads(path.read_text())
    metric = next(row.metric for row in recompute(read(receipt)).rows if row.metric in receipt["metrics"])
    receipt["metrics"][metric]["value"] += 1
    page.route(f"**/{path.parent.name}/*.json", partial(changed, json.dumps(receipt)))
    return metric
