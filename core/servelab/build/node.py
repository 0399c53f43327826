"""Running the Node tools under site/runtime, and keeping what they make by the hash of what went in."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from servelab.build.project import BuildError, Project

MINIMUM = 20
CHATTER = 2000
"""Characters of a failing tool's output that are worth showing."""

KEPT = 4
"""Generations of each cached piece that stay."""


def node(project: Project, tool: str, *arguments: str | Path) -> str:
    """Standard output of `node site/runtime/<tool> …`. BuildError with the tool's own words when it fails."""
    program = shutil.which("node")
    if program is None:
        raise BuildError(f"node is not installed; install Node {MINIMUM} or later (Debian: apt-get install nodejs npm)")
    command = [program, str(project.site / "runtime" / tool), *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise BuildError(f"site/runtime/{tool} failed: {(done.stderr or done.stdout)[-CHATTER:].strip()}")
    return done.stdout


def node_version() -> str:
    """Version of the Node that is used, e.g. "v20.20.2". BuildError when it is missing or older than 20."""
    program = shutil.which("node")
    version = (
        subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.strip()
        if program
        else ""
    )
    if not version.startswith("v") or int(version[1:].split(".")[0]) < MINIMUM:
        raise BuildError(f"found Node {version or 'none'}; install Node {MINIMUM} or later")
    return version


def digest(*parts: bytes | str | Path) -> str:
    """sha256 (hex) of a list of byte strings, texts and files' contents, each with its length before it."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()


def tree(folder: Path, suffixes: Iterable[str] = ()) -> list[Path]:
    """All files under a folder, sorted, without caches; with `suffixes`, only those."""
    wanted = tuple(suffixes)
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in files if not wanted or path.suffix in wanted)


def cached(project: Project, name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder .cache/build/<name>-<key>, made by make(folder) if it is not there; a failure leaves nothing."""
    folder = project.cache / f"{name}-{key[:16]}"
    if folder.is_dir():
        return folder
    project.cache.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=project.cache))
    try:
        make(scratch)
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    made = sorted(project.cache.glob(f"{name}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in made[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def compact(value: object) -> bytes:
    """JSON as the site writes it: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
