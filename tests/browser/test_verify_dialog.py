"""Verify: what a page finds about a receipt, and which one it names when somebody changed a digit."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
ROOT = Path(__file__).parents[2]
KEY = next((ROOT / "receipts/keys").glob("*.pub")).stem
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
    assert ok == "true" and text.startswith(f"{len(metrics)} numbers and the statistic are the same."), text
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


@pytest.mark.parametrize(("what", "says"), [
    pytest.param("key", "answered 404", id="no key"),
    pytest.param("sig", f"key {KEY} or its signature is damaged and cannot be read", id="damaged signature"),
])
def test_what_is_wrong_with_a_signature_leaves_the_other_findings(page_watch: Open, what: str, says: str) -> None:
    sig = json.loads((ROOT / "receipts/attestation.json").read_text())["signatures"][0]["sig"].encode()

    def prepare(context: Any) -> None:
        if what == "key":
            context.route("**/*.pub", lambda route: route.fulfill(status=404))
        else:
            context.route("**/attestation.json", changed(sig, b"%" + sig[1:]))

    page = page_watch(DESK, prepare=prepare, allow=("404",))
    page.locator("#tiles-a .receipt").first.click()
    assert finding(page, "unmodified")[0] == "true"
    ok, text = finding(page, "signed")
    assert ok == "false" and "no known key" in text and says in text and "Exception" not in text, text
    assert finding(page, "again")[0] == "true"


def test_without_a_statement_the_bytes_are_not_called_changed(page_watch: Open) -> None:
    payload = json.loads((ROOT / "receipts/attestation.json").read_text())["payload"].encode()
    spoil = changed(payload, b"%" + payload[1:])
    page = page_watch(DESK, prepare=lambda c: c.route("**/attestation.json", spoil))
    page.locator("#tiles-a .receipt").first.click()
    ok, text = finding(page, "unmodified")
    assert ok == "null" and "cannot be read" in text
    assert finding(page, "signed") == (
        "false", "attestation.json is damaged and cannot be read; get it again from its source",
    )
    assert finding(page, "again")[0] == "true"


def test_plots_of_a_receipt_open_it_and_words_without_one_are_explained(page_watch: Open) -> None:
    page = page_watch(DESK)
    page.wait_for_selector("#stage-a canvas")  # from here on the page's modules own its elements
    for i, kind in enumerate(("kv_waste", "kv_prefix")):
        page.locator("#below [data-kind=plot]").nth(1 + i).scroll_into_view_if_needed()
        page.locator(f"#below [data-kind=plot] [data-claim={kind}]").click()
        page.wait_for_selector(f"#verify h2:text-is('Receipt: {kind}')")
        assert finding(page, "unmodified")[0] == "true"
        page.keyboard.press("Escape")
    page.locator("#below [data-kind=table]").first.scroll_into_view_if_needed()
    for root, word in (("#tiles-a", "derived"), ("#tiles-a", "model"), ("#below [data-kind=table]", "derived")):
        basis = page.locator(f"{root} [data-dialog=help]", has_text=word).first
        assert "here and now by the core" in basis.get_attribute("title")
        basis.click()
        assert basis.get_attribute("title") == page.inner_text(f"#basis-{word}") and page.is_visible("#help")
        page.keyboard.press("Escape")


def test_the_receipts_page_lists_numbers_that_can_be_read(page_watch: Open) -> None:
    page = page_watch("receipts/")
    assert "n is how many observations" in page.inner_text("main")
    for path in (ROOT / "receipts").glob("kv_*/*.json"):
        for name, metric in json.loads(path.read_text())["metrics"].items():
            row = page.locator(f"#{path.parent.name} tr", has=page.get_by_role("rowheader", name=name, exact=True))
            value = metric["value"]
            shown = [f"{value:,}" if isinstance(value, int) else f"{value:,.9g}", metric["unit"], f"{metric['n']:,}"]
            assert row.locator("td").all_inner_texts() == shown
            assert row.locator("td").first.get_attribute("title") == str(value)


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
    kinds = sorted({path.parent.name for path in (ROOT / "receipts").glob("*/*-*-*.json")})
    for kind in kinds:
        for name in ("unmodified", "signed", "again"):
            ok, text = finding(page, name, f"#{kind}")
            assert ok == "true", f"{kind} {name}: {text}"
    page.wait_for_selector(f"#status:has-text('{len(kinds)} of {len(kinds)} receipts')")
