"""boot.mjs in Chromium: the snapshot, the way back to precompiled files, a named error for everything that can break.

The built site's own worker is started from its page, and every message it sends is kept.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servelab.build import serve

playwright = pytest.importorskip("playwright.sync_api", reason="browser tests need the dev extra (playwright)")
pytestmark = pytest.mark.browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]

BOOT = """async ({ needs, snapshot }) => {
  const config = JSON.parse(document.querySelector("#config").textContent);
  if (!snapshot) config.runtime.snapshot = null;
  const worker = new Worker(config.worker, { type: "module" });
  const messages = [];
  const ended = new Promise((resolve) => {
    worker.onmessage = ({ data }) => {
      messages.push(data);
      if (data.type !== "stage") resolve();
    };
    worker.onerror = (event) => resolve(messages.push({ type: "failed", name: "WorkerError", message: event.message }));
  });
  worker.postMessage({ type: "boot", config: { ...config, base: location.href, studio: { ...config.studio, needs } } });
  await ended;
  worker.terminate();
  return messages;
}"""

Boot = Callable[..., list[dict[str, Any]]]
Break = Callable[[Any], None]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def host(built: Path) -> Iterator[serve.Server]:
    server = serve.start(built / "site", 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def boot(browser: Any, host: serve.Server) -> Iterator[Boot]:
    """boot({"*wasm*": handler}, needs=(…), snapshot=True): the worker's messages, some requests answered otherwise."""
    context = browser.new_context(service_workers="block")

    def run(broken: dict[str, Break] | None = None, needs: tuple[str, ...] = (), snapshot: bool = True) -> Any:
        page = context.new_page()
        page.goto(f"{host.address}receipts/")
        for pattern, answer in (broken or {}).items():
            context.route(pattern, answer)
        return page.evaluate(BOOT, {"needs": list(needs), "snapshot": snapshot})

    yield run
    context.close()


def missing(route: Any) -> None:
    route.fulfill(status=404, body="404: no such file")


def a_web_page(route: Any) -> None:
    route.fulfill(status=200, content_type="application/wasm", body="<!doctype html><title>Sign in</title>")


def cut(route: Any) -> None:
    body = route.fetch().body()
    route.fulfill(status=200, body=body[: len(body) // 2], content_type="application/gzip")


def spoiled(route: Any) -> None:
    body = bytearray(route.fetch().body())
    body[len(body) // 2 : len(body) // 2 + 64] = bytes(64)
    route.fulfill(status=200, body=bytes(body), content_type="application/gzip")


def silent(route: Any) -> None:
    """Never answer."""


def last(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return messages[-1]


def test_the_snapshot_boots_and_says_what_it_does(boot: Boot) -> None:
    messages = boot()
    assert (last(messages)["type"], last(messages).get("path")) == ("ready", "snapshot"), last(messages)
    stages = [message for message in messages if message["type"] == "stage"]
    assert [stage["ms"] for stage in stages] == sorted(stage["ms"] for stage in stages)
    assert {stage["stage"] for stage in stages} == {"runtime", "snapshot", "python", "core"}
    for name in ("runtime", "snapshot"):
        counted = [stage for stage in stages if stage["stage"] == name and stage.get("bytes")]
        assert counted[-1]["bytes"] == counted[-1]["total"] > 1_000_000


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [("**/snapshot.bin.gz", missing), ("**/snapshot.bin.gz", cut), ("**/snapshot.bin.gz", spoiled)],
)
def test_any_trouble_with_the_snapshot_leads_to_the_precompiled_files(pattern: str, answer: Break, boot: Boot) -> None:
    messages = boot({pattern: answer})
    assert (last(messages)["type"], last(messages).get("path")) == ("ready", "precompiled"), last(messages)
    assert any(message.get("label", "").startswith("No snapshot (snapshot.bin.gz ") for message in messages)


def test_a_build_without_a_snapshot_boots(boot: Boot) -> None:
    assert last(boot(snapshot=False))["path"] == "precompiled"


@pytest.mark.parametrize("snapshot", [True, False])
def test_a_studio_that_needs_numpy_gets_it(snapshot: bool, boot: Boot) -> None:
    messages = boot(needs=("numpy",), snapshot=snapshot)
    assert last(messages)["type"] == "ready", last(messages)
    assert any("numpy-2.4.3" in message.get("label", "") for message in messages)


@pytest.mark.parametrize(
    ("broken", "needs", "snapshot", "name", "said"),
    [
        ({"**/pyodide.asm.wasm.gz": missing}, (), True, "MissingFile", "pyodide.asm.wasm.gz answered 404"),
        ({"**/pyodide.asm.wasm.gz": a_web_page}, (), True, "BrokenWasm", "it begins with 3c 21 64 6f"),
        ({"**/pyodide.asm.wasm.gz": cut}, (), True, "TruncatedDownload", "bytes"),
        ({"**/pyodide.asm.wasm.gz": spoiled}, (), True, "DamagedFile", "pyodide.asm.wasm.gz cannot be read"),
        ({"**/pyodide.asm.mjs": missing}, (), True, "MissingFile", "pyodide.asm.mjs did not load"),
        ({"**/servelab-*.whl": missing}, (), False, "MissingFile", "py3-none-any.whl answered 404"),
        (
            {"**/snapshot.bin.gz": missing, "**/python_stdlib.zip": cut},
            (),
            True,
            "TruncatedDownload",
            "python_stdlib.zip",
        ),
        ({}, ("pandas",), True, "UnknownPackage", "this build ships no pandas"),
        ({"**/bundle.json": missing}, (), True, "MissingFile", "the receipts answered 404"),
    ],
)
def test_every_failure_has_a_name_and_a_fix(
    broken: dict[str, Break], needs: tuple[str, ...], snapshot: bool, name: str, said: str, boot: Boot
) -> None:
    failed = last(boot(broken, needs, snapshot))
    assert (failed["type"], failed["name"]) == ("failed", name), failed
    assert said in failed["message"] and "reload" in failed["fix"].lower() and failed["stage"]


def test_silence_ends_after_ten_seconds(boot: Boot) -> None:
    failed = last(boot({"**/python_stdlib.zip": silent}, snapshot=False))
    assert (failed["type"], failed["name"]) == ("failed", "Silence"), failed
    assert "10 s" in failed["message"]


class Encoding(serve.Handler):
    """A host that marks stored .gz files as encoded, so that browsers inflate them before the page sees them."""

    def _send(self, status: Any, content: bytes, headers: dict[str, str], body: bool) -> None:
        marked = {"Content-Encoding": "gzip"} if self.path.endswith(".gz") else {}
        super()._send(status, content, headers | marked, body)


def test_a_host_that_marks_gz_files_as_encoded_is_no_trouble(boot: Boot, host: serve.Server) -> None:
    host.RequestHandlerClass = Encoding
    messages = boot()
    assert (last(messages)["type"], last(messages).get("path")) == ("ready", "snapshot"), last(messages)
    assert max(message["bytes"] for message in messages if message.get("bytes")) <= max(
        message["total"] for message in messages if message.get("total")
    )
