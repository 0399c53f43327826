"""Verify: what a page finds about a receipt, and which one it names when somebody changed a digit."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
ROOT = Path(__file__).parents[2]
DESK = "kv-desk/"
NO_ED25519 = """if (crypto.subtle) {
    const real = crypto.subtle.importKey.bind(crypto.subtle);
    crypto.subtle.importKey = (...a) => (a[0] === 'spki' ? Promise.reject(new Error('no')) : real(...a));
}"""


def finding(page: Any, name: str, root: str = "#verify") -> tuple[str | None, str]:
    """(true, false or null; the sentence) once it is there."""
    line = page.locator(f"{root} [data-check={name}]")
    line.locator("xpath=self::*[@data-ok='true' or @data-ok='false' or @data-ok='null']").wait_for(timeout=30_000)
    return line.get_attribute("data-ok"), line.locator("span").inner_text()


def changed(old: bytes, new: bytes) -> Callable[[Any], None]:
    """A route that answers with the real file, one part of it replaced."""

    def answer(route: Any) -> None:
        body = route.fetch().body()
        assert old in body
        route.fulfill(body=body.replace(old, new, 1), content_type="application/json")

    return answer


def test_a_tile_opens_its_receipt_and_runs_it_again(page_watch: Open) -> None:
    page = page_watch(DESK)
    page.locator("#tiles-a .receipt").nth(2).click()
    ok, text = finding(page, "unmodified")
    path = next((ROOT / "receipts/kv_pages").glob("*.json"))
    assert ok == "true" and hashlib.sha256(path.read_bytes()).hexdigest()[:16] in text
    ok, text = finding(page, "signed")
    assert ok == "true" and (ROOT / f"receipts/keys/{text.split(':')[0]}.pub").is_file()
    ok, text = finding(page, "again")
    metrics = json.loads(path.read_text())["metrics"]
    said = re.match(r"(\d+) of (\d+) numbers are the same", text)
    assert ok == "true" and said and said[1] == said[2] and int(said[1]) >= len(metrics)
    row = page.locator("#v-rows tr", has_text="shared_blocks").first.inner_text().split()
    assert row[:3] == ["shared_blocks", "204", "204"]
    assert "They do not show that a number is true" in page.inner_text("#verify")


def test_one_digit_changed_is_named(page_watch: Open) -> None:
    page = page_watch(DESK, prepare=lambda c: c.route("**/kv_pages/*.json", changed(b'"value":204', b'"value":203')))
    page.locator(".prose .claim", has_text="204").first.click()
    ok, text = finding(page, "unmodified")
    assert ok == "false" and "kv_pages/" in text and "was changed" in text
    assert finding(page, "signed")[0] == "true", "the signature is over the statement, which is whole"
    ok, text = finding(page, "again")
    assert ok == "false" and "shared_blocks" in text
    assert page.is_visible("#stage-a canvas")


def test_a_changed_statement_loses_its_signature(page_watch: Open) -> None:
    envelope = json.loads((ROOT / "receipts/attestation.json").read_text())
    payload = base64.b64decode(envelope["payload"])
    other = base64.b64encode(payload.replace(b"kv_pages/", b"kv_Pages/", 1)).decode()
    page = page_watch(
        DESK, prepare=lambda c: c.route("**/attestation.json", changed(envelope["payload"].encode(), other.encode()))
    )
    page.locator("#tiles-a .receipt").first.click()
    assert finding(page, "unmodified")[0] == "false"
    ok, text = finding(page, "signed")
    assert ok == "false" and "no known key" in text


def test_a_browser_without_ed25519_gets_the_same_answer(page_watch: Open) -> None:
    page = page_watch(DESK, prepare=lambda c: c.add_init_script(NO_ED25519))
    page.locator("#tiles-a .receipt").first.click()
    assert finding(page, "signed")[0] == "true"
    assert any("ed25519" in url for url in page.watch.requests)


def test_a_replayed_receipt_is_recomputed_from_its_statistic_and_asks_for_the_data(page_watch: Open) -> None:
    page = page_watch(DESK)
    page.locator("[data-claim='kv_waste.b16_at_completion_percent']").click()
    ok, text = finding(page, "again")
    assert ok == "true", text
    assert page.is_visible("#v-drop")
    page.set_input_files("#v-drop input", {"name": "wrong.csv", "mimeType": "text/csv", "buffer": b"TIMESTAMP\n"})
    page.wait_for_selector("[data-check=again][data-ok=false]")


def test_a_missing_receipt_says_so(page_watch: Open) -> None:
    page = page_watch(
        DESK, prepare=lambda c: c.route("**/receipts-*/index.json", lambda r: r.fulfill(status=404)), allow=("404",)
    )
    page.locator("#tiles-a .receipt").first.click()
    ok, text = finding(page, "unmodified")
    assert ok == "false" and "index.json answered 404" in text


def test_the_receipts_page_checks_all(page_watch: Open) -> None:
    page = page_watch("receipts/")
    page.click("[data-act=all]")
    kinds = [p.name for p in (ROOT / "receipts").iterdir() if p.is_dir() and p.name.startswith("kv_")]
    for kind in kinds:
        for name in ("unmodified", "signed", "again"):
            ok, text = finding(page, name, f"#{kind}")
            assert ok == "true", f"{kind} {name}: {text}"
    page.wait_for_selector(f"#status:has-text('{len(kinds)} of {len(kinds)} receipts')")
