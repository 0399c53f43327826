"""A Frame made by CPython is the one that Pyodide makes in Chromium, byte for byte, however Python was started."""

from __future__ import annotations

import hashlib
import json
import random
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from studio_page import STUDIOS, called, nearby

from servelab.view import bridge
from servelab.view.control import to_query
from servelab.view.studio import studio

pytestmark = pytest.mark.browser
SEED, STATES = 20, 20

BOOT = """async ({slug, path}) => {
  const at = new URL(`../${slug}/`, location.href);
  const page = new DOMParser().parseFromString(await (await fetch(at)).text(), "text/html");
  const config = {...JSON.parse(page.querySelector("#config").textContent), base: at.href};
  if (path !== "snapshot") config.runtime = {...config.runtime, snapshot: null};
  const worker = window.worker = new Worker(new URL(config.worker, at), {type: "module"});
  const ready = new Promise((resolve, reject) => {
    worker.onerror = event => reject(new Error(event.message));
    worker.onmessage = ({data}) => {
      if (data.type === "ready") resolve(data.path);
      if (data.type === "failed") reject(new Error(`${data.name}: ${data.message}`));
    };
  });
  worker.postMessage({type: "boot", config});
  const presets = Object.entries(config.presets);
  const files = await Promise.all(presets.map(async ([, {frame}]) => (await fetch(new URL(frame, at))).text()));
  const frames = Object.fromEntries(presets.map(([name], i) => [name, files[i]]));
  return {path: await ready, page: page.querySelector("#frame").textContent, frames,
    bundle: await (await fetch(new URL(config.receipts.bundle, at))).text()};
}"""

CALL = """async params => {
  const hex = buffer => Array.from(new Uint8Array(buffer), byte => byte.toString(16).padStart(2, "0")).join("");
  const answered = new Promise(resolve => { worker.onmessage = ({data}) => data.type === "reply" && resolve(data); });
  worker.postMessage({type: "call", id: 1, method: "view", params});
  const {header, buffers} = await answered;
  return [header, await Promise.all(buffers.map(async data => hex(await crypto.subtle.digest("SHA-256", data))))];
}"""


def in_pyodide(page: Any, name: str, query: dict[str, str], rest: bool = False) -> tuple[str, list[str]]:
    """(header, sha256 of every buffer) from the worker on the page."""
    header, digests = page.evaluate(CALL, json.dumps({"studio": name, "state": query, "rest": rest}))
    return header, digests


@cache
def here(name: str, *query: tuple[str, str]) -> tuple[str, list[str]]:
    """The same from this interpreter."""
    return digested(*called(name, dict(query)))


def digested(header: str, buffers: list[bytes]) -> tuple[str, list[str]]:
    return header, [hashlib.sha256(data).hexdigest() for data in buffers]


def inlined(value: Any, buffers: list[bytes]) -> Any:
    """A header with its columns in place, as pages bake it."""
    if isinstance(value, list):
        return [inlined(item, buffers) for item in value]
    if not isinstance(value, dict):
        return value
    if "$" in value:
        rest = {key: item for key, item in value.items() if key != "$"}
        return rest | {"$b64": b64encode(buffers[value["$"]]).decode()}
    return {key: inlined(item, buffers) for key, item in value.items()}


@pytest.mark.parametrize("path", ["snapshot", "precompiled"])
@pytest.mark.parametrize("name", STUDIOS)
def test_pyodide_and_cpython_make_the_same_bytes(page_watch: Callable[..., Any], name: str, path: str) -> None:
    room = studio(name)
    page = page_watch("receipts/")
    booted = page.evaluate(BOOT, {"slug": name.replace("_", "-"), "path": path})
    assert booted["path"] == path
    bridge.load(booted["bundle"])

    for preset, held in room.PRESETS.items():
        query = to_query(held.state)
        assert in_pyodide(page, name, query) == here(name, *query.items()), preset
        header, buffers = called(name, query)
        baked = inlined(json.loads(header)["frame"], buffers)
        assert in_pyodide(page, name, query, rest=True) == digested(*called(name, query, rest=True)), preset
        header, buffers = called(name, query, rest=True)
        last = inlined(json.loads(header)["frame"], buffers)["panels"]
        found = json.loads(booted["frames"][preset])
        assert found == baked | {"panels": baked["panels"] + last}, preset
        if preset == next(iter(room.PRESETS)):
            assert json.loads(booted["page"]) == baked

    rng = random.Random(SEED)
    kinds = set()
    for _ in range(STATES):
        query = nearby(room, rng)
        wanted = here(name, *query.items())
        assert in_pyodide(page, name, query) == wanted, query
        kinds.add(wanted[0][:8])
    assert '{"frame"' in kinds
