"""The Python that a page boots: Pyodide's files, precompiled libraries, and a memory snapshot on top.

    pyodide.mjs, pyodide.asm.mjs   as npm has them
    pyodide.asm.wasm.gz            inflated by the page: no host has to compress it, and progress is real
    python_stdlib.zip              byte code without docstrings, without what a page cannot use
    servelab-….whl                 the core and the studios, byte code
    servelab_….whl                 a room and its studio: fetched by that studio's page, and where all is fetched
    numpy-….whl                    fetched only by a studio that NEEDS it
    snapshot.bin.gz                memory of a Python that has imported the core: the fast way to boot

Every piece is kept in .cache under the hash of its inputs, so a second build costs no Node at all.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servelab.build import wheel
from servelab.build.node import cached, compact, digest, node, node_version, tree
from servelab.build.project import BuildError, Project

CORE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
STDLIB = "python_stdlib.zip"
SITE_PACKAGES = "/lib/python3.14/site-packages/"

TRIMMED = (
    "_pyrepl/", "unittest/", "pydoc", "doctest.py", "pdb.py", "bdb.py", "multiprocessing/", "xmlrpc/", "wsgiref/",
    "mailbox.py", "imaplib.py", "smtplib.py", "poplib.py", "ftplib.py", "_pyio.py", "_pydecimal.py", "xml/", "sqlite3/",
    "ctypes/macholib", "http/server.py", "_aix", "_osx", "_android", "_apple", "webbrowser.py", "__phello__",
    "nturl2path", "socketserver.py", "netrc", "tabnanny", "this.py", "antigravity", "rlcompleter", "modulefinder",
    "asyncio/windows", "asyncio/proactor",
)  # fmt: skip
"""Beginnings of standard library files that a page cannot use: consoles, servers, other systems, debuggers."""

SOURCE_ONLY = (
    ".pyi",
    ".h",
    ".a",
    ".pxd",
    ".c",
    ".pyx",
    ".rst",
    ".ini",
    ".f",
    ".f90",
    ".typed",
    ".npz",
    ".build",
    ".in",
)
NUMPY_TRIMMED = (
    "/tests/",
    "numpy/f2py/",
    "numpy/distutils",
    "numpy/doc/",
    "numpy/_pyinstaller",
    "numpy/typing/",
    "numpy/conftest",
)


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the runtime: `bytes` as stored, `raw` after the page has inflated it; `more` are keys of its own."""

    path: Path
    raw: int
    more: dict[str, Any]

    def config(self) -> dict[str, Any]:
        """What boot.mjs reads."""
        return {"file": self.path.name, "bytes": self.path.stat().st_size, "raw": self.raw, **self.more}


@dataclass(frozen=True, slots=True)
class Runtime:
    """Files of the runtime folder by name, and the `config` that boot.mjs takes (without `dir`)."""

    files: dict[str, Path]
    config: dict[str, Any]

    def without(self, names: set[str]) -> Runtime:
        """The same runtime without those optional packages: a Space ships what its studio needs."""
        gone = {part["file"] for name, part in self.config["packages"].items() if name in names}
        lock = self.config["lock"]
        config = self.config | {
            "packages": {name: part for name, part in self.config["packages"].items() if name not in names},
            "lock": lock | {"packages": {name: entry for name, entry in lock["packages"].items() if name not in names}},
        }
        return Runtime({name: path for name, path in self.files.items() if name not in gone}, config)


def build(project: Project, *, snapshot: bool = True) -> Runtime:
    """Make (or take from the cache) everything a page needs to run Python. `snapshot` False leaves the fast way out."""
    pyodide = _pyodide(project)
    wasm = _inflatable(project, pyodide / "pyodide.asm.wasm")
    stdlib = _precompiled(project, pyodide, pyodide / STDLIB, "/lib/python314.zip/", 2, _stdlib_names(pyodide / STDLIB))
    core = _core(project, pyodide)
    rooms = {room: _core(project, pyodide, room) for room in wheel.ROOMS}
    packages = {path.name.split("-")[0]: path for path in _vendored(project, pyodide)}
    parts = {"wasm": wasm, "stdlib": _plain(stdlib), "core": _plain(core)}
    if snapshot:
        parts["snapshot"] = _snapshot(project, pyodide, stdlib, core)
    files = {name: pyodide / name for name in ("pyodide.mjs", "pyodide.asm.mjs", "empty.zip")}
    files |= {part.path.name: part.path for part in parts.values()}
    files |= {path.name: path for path in (*packages.values(), *rooms.values())}
    lock = json.loads((pyodide / "pyodide-lock.json").read_text())
    config = {name: part.config() for name, part in parts.items()} | {
        "version": project.pins["pyodide"],
        "packages": {name: _plain(path).config() for name, path in packages.items()},
        "rooms": {name: _plain(path).config() for name, path in rooms.items()},
        "lock": {
            "info": lock["info"],
            "packages": {name: _locked(lock, name, path) for name, path in packages.items()},
        },
    }
    return Runtime(dict(sorted(files.items())), config)


def installed_version(project: Project, package: str) -> str:
    """Version of an installed npm package."""
    return str(json.loads(project.npm(package, "package.json").read_text())["version"])


def _pyodide(project: Project) -> Path:
    """The folder that Node boots from: npm's files and an empty zip (the page brings the library as bytes)."""
    found, wanted = installed_version(project, "pyodide"), project.pins["pyodide"]
    if found != wanted:
        raise BuildError(
            f"site/node_modules has pyodide {found}, pyproject.toml pins {wanted}; run npm ci --ignore-scripts in site/"
        )
    sources = [project.npm("pyodide", name) for name in CORE_FILES]

    def make(folder: Path) -> None:
        for source in sources:
            shutil.copyfile(source, folder / source.name)
        zipfile.ZipFile(folder / "empty.zip", "w").close()

    return cached(project, "pyodide", digest(wanted, *(str(path.stat().st_size) for path in sources)), make)


def _tools(project: Project) -> list[Path]:
    return [*tree(project.site / "runtime"), project.static / "start.mjs"]


def _precompiled(project: Project, pyodide: Path, source: Path, prefix: str, optimize: int, names: list[str]) -> Path:
    """A zip of byte code made from a zip of sources; `names` are the entries to keep."""

    def make(folder: Path) -> None:
        job = {
            "in": str(source),
            "out": str(folder / source.name),
            "prefix": prefix,
            "optimize": optimize,
            "names": names,
        }
        jobs = folder / "jobs.json"
        jobs.write_bytes(compact([job]))
        node(project, "precompile.mjs", pyodide, jobs)
        jobs.unlink()

    key = digest(source, prefix, str(optimize), *names, *_tools(project), pyodide.name)
    return cached(project, f"pyc-{source.name.split('-')[0].split('.')[0]}", key, make) / source.name


def _stdlib_names(library: Path) -> list[str]:
    names = zipfile.ZipFile(library).namelist()
    return sorted(name for name in names if not name.endswith("/") and not name.startswith(TRIMMED))


def _core(project: Project, pyodide: Path, room: str = "") -> Path:
    """The core's wheel, or a room's, as byte code."""
    name = f"{room or 'servelab'}-{project.version}-py3-none-any.whl"

    def make(folder: Path) -> None:
        wheel.write(project, folder / name, room)

    key = digest(name, *(part for item in wheel.sources(project, room).items() for part in item))
    source = cached(project, "wheel", key, make) / name
    return _precompiled(project, pyodide, source, SITE_PACKAGES, 0, zipfile.ZipFile(source).namelist())


def _vendored(project: Project, pyodide: Path) -> list[Path]:
    """numpy, as byte code; regex waits in site/vendor for the first room that needs it."""
    check_vendor(project)
    out = []
    for source in sorted((project.site / "vendor").glob("numpy-*.whl")):
        names = [n for n in zipfile.ZipFile(source).namelist() if not n.endswith(("/", *SOURCE_ONLY))]
        names = [n for n in names if not any(part in n for part in NUMPY_TRIMMED)]
        out.append(_precompiled(project, pyodide, source, SITE_PACKAGES, 2, names))
    return out


def check_vendor(project: Project) -> None:
    """Every vendored wheel has the sha256 in SHA256SUMS and in Pyodide's own lock file; BuildError if not."""
    lock = json.loads(project.npm("pyodide", "pyodide-lock.json").read_text())["packages"]
    for line in (project.site / "vendor" / "SHA256SUMS").read_text().splitlines():
        wanted, name = line.split()
        found = hashlib.sha256((project.site / "vendor" / name).read_bytes()).hexdigest()
        if not found == wanted == lock[name.split("-")[0]]["sha256"]:
            raise BuildError(
                f"site/vendor/{name} has sha256 {found[:16]}…, pinned is {wanted[:16]}…; restore it from git"
            )


def _snapshot(project: Project, pyodide: Path, stdlib: Path, core: Path) -> Part:
    packages = ",".join(wheel.packages(project))

    def make(folder: Path) -> None:
        site = folder / "site"
        with zipfile.ZipFile(core) as archive:
            archive.extractall(site)
        node(project, "snapshot.mjs", pyodide, stdlib, site, packages, folder / "snapshot.bin")
        shutil.rmtree(site)
        compress(folder / "snapshot.bin")

    key = digest(stdlib, core, packages, *_tools(project), node_version(), pyodide.name)
    folder = cached(project, "snapshot", key, make)
    facts = json.loads((folder / "snapshot.bin.json").read_text())
    return Part(folder / "snapshot.bin.gz", facts["raw"], {"base": facts["base"], "digest": facts["digest"]})


def _inflatable(project: Project, source: Path) -> Part:
    def make(folder: Path) -> None:
        shutil.copyfile(source, folder / source.name)
        compress(folder / source.name)

    raw = source.stat().st_size
    return Part(cached(project, "wasm", digest(source), make) / f"{source.name}.gz", raw, {})


def compress(path: Path) -> None:
    """Put path.gz in the place of path: level 9, no name and no time inside."""
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    path.unlink()


def _plain(path: Path) -> Part:
    return Part(path, path.stat().st_size, {})


def _locked(lock: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    """The lock entry of a package as this build ships it."""
    entry: dict[str, Any] = lock["packages"][name]
    return entry | {"file_name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
