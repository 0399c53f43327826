"""The seam between a page and the core: text and bytes in, text and bytes out.

The worker calls `load(receipts)` once and then `call(method, params, file)`. Nothing is raised across the seam: a
problem comes back as `{"error": {"name", "message", "problems"}}`, so that a page can say it beside its control.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from servelab import __version__
from servelab.receipt.recompute import recompute
from servelab.receipt.schema import Receipt, read
from servelab.view.control import StateError, from_query, to_query
from servelab.view.export import FORMATS
from servelab.view.frame import Frame
from servelab.view.studio import remaining, studio, whole

Reply = tuple[str, list[bytes]]

_receipts: dict[str, Receipt] = {}


def load(bundle: str) -> int:
    """Take the page's receipts, `{kind: receipt}` as JSON; returns how many there are.

    A view allocates thousands of tuples and no cycles: looking for cycles every few hundred would double its time.
    """
    gc.freeze()
    gc.set_threshold(2_000_000)
    _receipts.clear()
    _receipts.update({kind: read(value) for kind, value in json.loads(bundle).items()})
    return len(_receipts)


def call(method: str, params: str, file: bytes | None = None) -> Reply:
    """Answer one request of the page: (header JSON, column bytes). See METHODS for the names."""
    try:
        if method not in METHODS:
            raise ValueError(f"no method {method!r}; use one of {', '.join(METHODS)}")
        return METHODS[method](json.loads(params), file)
    except StateError as error:
        return _error("StateError", str(error), error.problems)
    except Exception as error:  # the seam: a page must get a sentence, whatever went wrong
        return _error(type(error).__name__, str(error), {})


def framed(frame: Frame, state: dict[str, str]) -> Reply:
    """A Frame with the state it shows, in wire form."""
    header, buffers = frame.encode()
    return f'{{"frame":{header},"state":{json.dumps(state, sort_keys=True)}}}', buffers


def _view(params: dict[str, Any], _: bytes | None) -> Reply:
    room = studio(params["studio"])
    state = from_query(room.State, params["state"])
    if params.get("rest"):
        return framed(Frame("", None, remaining(room, state, _receipts)), to_query(state))
    return framed(room.view(state, _receipts), to_query(state))


def _drop(params: dict[str, Any], file: bytes | None) -> Reply:
    room = studio(params["studio"])
    drop = getattr(room, "drop", None)
    if drop is None or file is None:
        raise ValueError(f"studio {params['studio']} reads no files; drop a trace on the KV desk")
    name = params["name"]
    try:
        return framed(drop(name, file, _receipts), getattr(room, "DROPPED", {}))
    except ValueError as error:
        raise ValueError(str(error).removeprefix(f"{name}: ")) from error  # the page names the file itself


def _recompute(params: dict[str, Any], file: bytes | None) -> Reply:
    result = recompute(read(params["receipt"]), () if file is None else (file,))
    body = asdict(result) | {"rows": [asdict(row) for row in result.rows]}
    return json.dumps(body, sort_keys=True), []


def _export(params: dict[str, Any], _: bytes | None) -> Reply:
    room = studio(params["studio"])
    if params["format"] not in FORMATS:
        raise ValueError(f"format {params['format']!r} is not offered; use one of {', '.join(FORMATS)}")
    suffix, mime, write = FORMATS[params["format"]]
    state = from_query(room.State, params["state"])
    made = f"studio {params['studio']} of servelab {__version__}"
    body = write(whole(room, state, _receipts), to_query(state, defaults=True), made)
    name = f"servelab-{params['studio'].replace('_', '-')}{suffix}"
    return json.dumps({"name": name, "mime": mime}), [body.encode()]


def _error(name: str, message: str, problems: dict[str, str]) -> Reply:
    return json.dumps({"error": {"name": name, "message": message or name, "problems": problems}}), []


METHODS: dict[str, Callable[[dict[str, Any], bytes | None], Reply]] = {
    "view": _view,
    "drop": _drop,
    "recompute": _recompute,
    "export": _export,
}
