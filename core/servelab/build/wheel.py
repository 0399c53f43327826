"""The core as the browser gets it: servelab without its commands and its signing side, the studios, and rfc8785.

Sources go into one zip with fixed order and times; the Node tool turns it into byte code with the interpreter that will
load it. What is left out needs a terminal, processes, a private key, git or the build's own libraries, or is a room
that no page uses yet (quant). A room that one studio alone needs is a wheel of its own (ROOMS), so that no other page
waits for it.
"""

from __future__ import annotations

import fnmatch
import importlib.metadata
import re
import zipfile
from pathlib import Path

from servelab.build.node import tree
from servelab.build.project import BuildError, Project

LEFT_OUT = (
    "servelab/build/*", "servelab/__main__.py", "servelab/sched/sweep.py", "servelab/receipt/attest.py",
    "servelab/receipt/verify.py", "servelab/quant/*",
)  # fmt: skip

ROOMS = {"servelab_plan": ("servelab/plan/*", "servelab/receipt/plan.py", "studios/planner/*")}
"""Wheels beside the core, by the name that a studio NEEDS: files as patterns."""

TERMINAL = re.compile(rb"^(?:import|from) (?:typer|rich)\b", re.MULTILINE)
"""Modules that import these at their top are commands and their printing; they are left out too."""

DEPENDENCIES = ("rfc8785",)
"""Pure-Python distributions that shipped modules import; copied as they are installed, licence included."""


def sources(project: Project, room: str = "") -> dict[str, bytes]:
    """Archive name → bytes of everything in the core's wheel, or in a room's; metadata apart."""
    core = project.root / "core"
    files = {path.relative_to(core).as_posix(): path for path in tree(core / "servelab", (".py", ".json"))}
    for name in project.studio_names():
        files |= {
            path.relative_to(project.root).as_posix(): path for path in tree(project.root / "studios" / name, (".py",))
        }
    found = {
        name: path.read_bytes() for name, path in files.items() if not any(fnmatch.fnmatch(name, p) for p in LEFT_OUT)
    }
    found = {name: data for name, data in found.items() if not TERMINAL.search(data) and _room(name) == room}
    for distribution in () if room else DEPENDENCIES:
        found |= _installed(distribution)
    return dict(sorted(found.items()))


def _room(name: str) -> str:
    return next((room for room, parts in ROOMS.items() if any(fnmatch.fnmatch(name, p) for p in parts)), "")


def packages(project: Project) -> list[str]:
    """Top-level packages of the wheel."""
    return sorted({name.split("/")[0] for name in sources(project) if name.endswith(".py")})


def write(project: Project, path: Path, room: str = "") -> None:
    """A source wheel at `path`, the same bytes for the same sources."""
    name = room or "servelab"
    info = f"{name}-{project.version}.dist-info"
    metadata = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {project.version}", "License: Apache-2.0", "")
    extra = {
        f"{info}/METADATA": "\n".join(metadata).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: servelab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (sources(project, room) | extra).items():
            archive.writestr(zipfile.ZipInfo(name), data)


def _installed(distribution: str) -> dict[str, bytes]:
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise BuildError(f"{distribution} is not installed; run pip install -e '.[site]'") from error
    wanted = [f for f in files if f.suffix == ".py" and f.parts[0] == distribution]
    return {f.as_posix(): Path(str(f.locate())).read_bytes() for f in wanted}
