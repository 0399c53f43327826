"""From a studio's `view` to HTML: the picture is in the page before any Python runs in the browser.

The default preset's Frame is baked into the page (columns as base64) and rendered by the templates; the other presets'
Frames are files beside it. Every URL is relative, so that a site works in any folder and inside an iframe.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined, TemplateError

from servelab.build.assets import Folder
from servelab.build.node import compact
from servelab.build.project import BuildError, Project
from servelab.receipt import Receipt
from servelab.view.control import controls, to_query
from servelab.view.frame import Frame
from servelab.view.studio import Studio, studio, whole


@dataclass(frozen=True, slots=True)
class Room:
    """A studio ready to be put on a page: its module, and each preset's Frame in baked form (JSON)."""

    name: str
    module: Studio
    baked: Mapping[str, dict[str, Any]]

    @property
    def slug(self) -> str:
        return self.name.replace("_", "-")

    def facts(self) -> dict[str, Any]:
        """What templates and pages know of a studio."""
        module = self.module
        return {
            "name": self.name,
            "slug": self.slug,
            "title": module.TITLE,
            "sentence": module.SENTENCE,
            "summary": module.SUMMARY,
            "controls": controls(module.State),
            "presets": {name: {"label": p.label, "note": p.note} for name, p in module.PRESETS.items()},
            "needs": list(module.NEEDS),
            "drops": getattr(module, "FILE", ""),
            "rests": hasattr(module, "rest"),
            "pastes": hasattr(module, "DROPPED"),
        }


def rooms(project: Project, receipts: Mapping[str, Receipt]) -> list[Room]:
    """Every studio with its presets' Frames. BuildError names the studio and the preset that cannot be drawn."""
    return [_room(name, receipts) for name in project.studio_names()]


def bake(frame: Frame) -> dict[str, Any]:
    """A Frame as JSON that stands alone: a column is {"$b64", "n", "type"}."""
    header, buffers = frame.encode()
    baked: dict[str, Any] = json.loads(header, object_hook=lambda o: _inline(o, buffers))
    return baked


def first(baked: dict[str, Any]) -> dict[str, Any]:
    """What a page holds for its modules: all but the panels that are computed last and large."""
    return baked | {"panels": [panel for panel in baked["panels"] if panel["area"] != "rest"]}


def plain(baked: Any) -> Any:
    """A baked frame for templates: columns become {"n", "type"} without their data."""
    if isinstance(baked, dict):
        return {key: plain(value) for key, value in baked.items() if key != "$b64"}
    return [plain(value) for value in baked] if isinstance(baked, list) else baked


def frames(room: Room) -> Folder:
    """The presets' Frames as files, <studio>-<preset>.json."""
    return Folder("frames", {f"{room.slug}-{name}.json": compact(baked) for name, baked in room.baked.items()})


def presets(room: Room, url: str) -> dict[str, dict[str, Any]]:
    """Preset name → {label, note, state, frame, beside}; `url` is the frames folder as the page sees it."""
    return {
        name: {
            "label": p.label,
            "note": p.note,
            "state": to_query(p.state),
            "frame": f"{url}{room.slug}-{name}.json",
            **({"beside": p.beside} if p.beside else {}),
        }
        for name, p in room.module.PRESETS.items()
    }


def environment(project: Project) -> Environment:
    """Jinja2 over site/templates and studios/<name>/page.html.j2 ("<name>/page.html.j2"); undefined names fail."""
    own = {name: FileSystemLoader(project.root / "studios" / name) for name in project.studio_names()}
    loader = ChoiceLoader([FileSystemLoader(project.site / "templates"), PrefixLoader(own)])
    made = Environment(loader=loader, undefined=StrictUndefined, autoescape=True, keep_trailing_newline=True)
    made.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False, "separators": (",", ":")}
    return made


def render(made: Environment, template: str, context: dict[str, Any]) -> bytes:
    """One page. BuildError names the template, the line where known, and what is wrong."""
    try:
        return made.get_template(template).render(context).encode()
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        raise BuildError(
            f"{getattr(error, 'name', None) or template}{f', line {line}' if line else ''}: {error.message or error!r}"
        ) from error


def _room(name: str, receipts: Mapping[str, Receipt]) -> Room:
    module = studio(name)
    baked = {}
    for preset, held in module.PRESETS.items():
        if held.beside and held.beside not in module.PRESETS:
            raise BuildError(f"studios/{name}: preset {preset!r} stands beside {held.beside!r}, which is no preset")
        try:
            baked[preset] = bake(whole(module, held.state, {kind: receipts[kind] for kind in module.RECEIPTS}))
        except (ValueError, TypeError, KeyError) as error:
            raise BuildError(f"studios/{name}: preset {preset!r} cannot be drawn: {error}") from error
    return Room(name, module, baked)


def _inline(value: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
    if "$" not in value:
        return value
    return {"$b64": base64.b64encode(buffers[value["$"]]).decode(), "n": value["n"], "type": value["type"]}
