"""The page "Open the code": PyScript's editor cell runs the core, and says what is wrong when it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
CELL = "document.querySelector('#cell script:not([setup])')"


def cpython(script: str) -> str:
    """What the script prints here, outside of any browser."""
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-c", script], env=env, check=True, capture_output=True, encoding="utf-8"
    ).stdout


def said(page: Any, word: str) -> None:
    """Wait until the status line has the word."""
    page.wait_for_function(
        "word => document.querySelector('#status').textContent.includes(word)", arg=word, timeout=60_000
    )


def run(page: Any) -> str:
    """Press Run and return what the script printed."""
    page.click("#run:not([disabled])")
    said(page, "Finished")
    return str(page.inner_text("#output"))


def write(page: Any, code: str) -> None:
    page.evaluate(f"code => {{ {CELL}.code = code }}", code)


def code(page: Any) -> str:
    page.wait_for_selector("#run:not([disabled])")
    return str(page.evaluate(f"{CELL}.code"))


def test_the_cell_prints_what_cpython_prints(page_watch: Callable[..., Any]) -> None:
    page = page_watch("code/")
    assert not page.evaluate("crossOriginIsolated")
    printed = run(page)
    assert printed.rstrip() == cpython(code(page)).rstrip()
    blocks = dict(line.split()[:2] for line in printed.splitlines()[1:4])
    assert blocks == {"preallocated": "504", "paged": "428", "shared": "204"}
    assert any("pyodide" in url for url in page.watch.requests)


def test_a_link_brings_its_state_and_no_code(page_watch: Callable[..., Any]) -> None:
    page = page_watch('code/?studio=kv-desk#block_size=32&dtype=int8&pool=-3&model=");print(1)%23&turns=2)')
    script = code(page)
    assert 'state = State(block_size=32, dtype="int8")\n' in script and "print(1)" not in script
    refused = page.inner_text("#refused")
    assert all(key in refused for key in ("pool=-3", "model=", "turns=2)"))
    assert run(page).rstrip() == cpython(script).rstrip()
    page.evaluate("location.hash = 'block_size=64'")
    page.wait_for_function(f"{CELL}.code.includes('State(block_size=64)')")


def test_keyboard_errors_and_stop(page_watch: Callable[..., Any]) -> None:
    page = page_watch("code/")
    said(page, "ready")
    assert page.evaluate("document.activeElement === document.body"), "the editor must not take the focus"
    page.focus(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.type("print('<b>', end='')\n1/0")
    page.keyboard.press("Control+Enter")
    said(page, "Finished")
    assert page.inner_text("#output").split("\n")[:3] == [
        "<b>",
        "Traceback (most recent call last):",
        '  File "<exec>", line 2, in <module>',
    ]
    page.wait_for_timeout(300)  # the first Escape would close a list of completions that is about to open
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "output"
    assert page.evaluate(f"{CELL}.code") == "print('<b>', end='')\n1/0"

    write(page, "print('on')\nwhile True: pass")
    page.click("#run")
    page.wait_for_function("document.querySelector('#output').textContent.includes('on')")
    page.click("#stop")
    said(page, "ready")
    assert page.evaluate(f"{CELL}.code") == "print('on')\nwhile True: pass"
    write(page, "for i in range(9000): print(i)")
    assert "4999\n… 5,000 lines are shown" in run(page)


REFUSE = "window.Worker = class { constructor() { throw new DOMException('Workers are off', 'SecurityError') } }"


@pytest.mark.parametrize(
    ("missing", "script", "name"),
    [
        ("**/core.js", "", "EditorMissing"),
        ("**/codemirror_view-*", "", "EditorMissing"),
        ("**/pyodide.asm.wasm*", "", "MissingFile"),
        ("**/servelab-*.whl*", "", "MissingFile"),
        ("", REFUSE, "WorkerRefused"),
    ],
)
def test_a_failure_has_a_name_and_a_way_on(
    page_watch: Callable[..., Any], missing: str, script: str, name: str
) -> None:
    def prepare(context: Any) -> None:
        if missing:
            context.route(missing, lambda route: route.fulfill(status=404, body="gone"))
        if script:
            context.add_init_script(script)

    page = page_watch("code/", allow=(".",), prepare=prepare, service_workers="block")
    page.wait_for_selector("#problem:not([hidden])", timeout=30_000)
    assert page.inner_text("#problem h2") == name
    words = page.inner_text("#problem")
    assert "pip install" in words and "Try again" in words
    assert "compare(" in page.locator("#cell .cm-content, #cell > pre").first.inner_text(), "the script stays"
    assert page.is_disabled("#run")


def test_accessible(page_watch: Callable[..., Any], axe: Callable[[Any], list[Any]]) -> None:
    page = page_watch("code/")
    run(page)
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert axe(page) == [], (width, scheme)
