"""One folder to serve: which studios it has, its assets, and what each of its pages knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from servelab.build import assets, evidence, pages
from servelab.build.assets import Folder
from servelab.build.node import digest
from servelab.build.project import Project
from servelab.build.runtime import Runtime

FRONT = "batcher"
"""The studio that the whole site opens with; the list of all is under its picture."""

Plan = list[tuple[str, str, pages.Room | None]]
"""(path, template, studio) of every page."""


@dataclass(frozen=True)
class Site:
    """`whole`: all studios, one of them on the front page too; else a single one, without packages it does not need."""

    project: Project
    proof: evidence.Evidence
    rooms: list[pages.Room]
    python: Runtime
    out: Path
    whole: bool

    @cached_property
    def runtime(self) -> Runtime:
        """Python with the packages that this site may load."""
        if self.whole:
            return self.python
        needed = {name for room in self.rooms for name in room.module.NEEDS}
        return self.python.without(set(self.python.config["packages"]) - needed)  # rooms stay: receipts are run again

    @cached_property
    def folders(self) -> dict[str, Folder]:
        """Every hashed folder of the site, by what it is."""
        found = {
            "shell": assets.shell(self.project),
            "runtime": Folder("runtime", self.runtime.files),
            "vendor": assets.vendor(self.project),
            "receipts": evidence.folder(self.proof, {room.name: room.module.RECEIPTS for room in self.rooms}),
        }
        found |= {f"frames-{room.name}": pages.frames(room) for room in self.rooms}
        editor = assets.pyscript(self.project)
        return found | ({"pyscript": editor} if editor else {})

    @property
    def version(self) -> str:
        """Changes when any asset does: the name of the offline copy."""
        return digest(*sorted(folder.url for folder in self.folders.values()))[: assets.SHORT]

    def plan(self) -> Plan:
        """Every page of the site."""
        plan: Plan = [("receipts/index.html", "receipts.html.j2", None)]
        if "pyscript" in self.folders:
            plan.append(("code/index.html", "code.html.j2", None))
        front = next((room for room in self.rooms if room.name == FRONT), self.rooms[0])
        plan.append(("index.html", f"{front.name}/page.html.j2", front))
        if not self.whole:
            return plan
        return [
            *plan,
            *((f"{room.slug}/index.html", f"{room.name}/page.html.j2", room) for room in self.rooms),
        ]

    def context(self, path: str, room: pages.Room | None) -> dict[str, Any]:
        """What the template of the page at `path` knows; every URL in it is relative to that page."""
        root = "../" * path.count("/")
        baked = next(iter(room.baked.values())) if room else None
        return {
            "root": root,
            "studio": room.facts() if room else None,
            "studios": [entry.facts() for entry in self.rooms],
            "front": self.whole and path == "index.html",
            "frame": pages.plain(baked),
            "baked": baked and pages.first(baked),
            "config": self.config(root, room),
            "assets": self.urls(root),
            "claim": evidence.claims(self.proof, f"{root}receipts/"),
            "receipts": evidence.rows(self.proof, root + self.folders["receipts"].url),
            "version": self.project.version,
            "commit": self.project.commit,
        }

    def urls(self, root: str) -> dict[str, str]:
        """What templates call `assets`; folders come without the last slash."""
        shell = root + self.folders["shell"].url
        files = {"app": "app.mjs", "worker": "worker.mjs", "css": "style.css", "icon": "icon.svg"}
        out = {name: shell + file for name, file in files.items()} | {"shell": shell.rstrip("/")}
        if "pyscript" in self.folders:
            out["pyscript"] = (root + self.folders["pyscript"].url).rstrip("/")
        return out

    def config(self, root: str, room: pages.Room | None) -> dict[str, Any]:
        """The JSON that a page's modules read."""
        out: dict[str, Any] = {
            "worker": f"{root}{self.folders['shell'].url}worker.mjs",
            "runtime": self.runtime.config | {"dir": root + self.folders["runtime"].url},
            "receipts": evidence.config(self.folders["receipts"], root, room.name if room else ""),
            "vendor": {name: root + url for name, url in assets.vendor_urls(self.folders["vendor"]).items()},
            "sw": f"{root}sw.js",
            "code": None,
            "version": self.project.version,
            "commit": self.project.commit,
        }
        if room is None:
            return out
        facts = room.facts()
        out |= {
            "studio": {key: facts[key] for key in ("name", "slug", "title", "needs", "pastes")},
            "controls": facts["controls"],
        }
        out["presets"] = pages.presets(room, root + self.folders[f"frames-{room.name}"].url)
        if "pyscript" in self.folders:
            out["code"] = f"{root}code/?studio={room.slug}"
        return out

    def precached(self, paths: list[str]) -> tuple[list[str], list[str]]:
        """Addresses for offline use: pages, shell, receipts and frames at once; Python and Plotly when idle."""
        here = [path.removesuffix("index.html") or "./" for path in paths]
        early = [f for name, f in self.folders.items() if name in ("shell", "receipts") or name.startswith("frames-")]
        optional = {part["file"] for part in self.runtime.config["packages"].values()}
        late = [self.folders["runtime"], self.folders["vendor"]]
        core = here + [folder.url + name for folder in early for name in folder.files if not name.startswith("code/")]
        return core, [
            f.url + name for f in late for name in f.files if name not in optional and not name.endswith(".txt")
        ]
