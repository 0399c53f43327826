"""Everything that must hold before a site is shown to anybody; problems are collected, not stopped at.

receipts    unmodified, signed, recomputed, inside their tolerances (servelab.receipt.verify)
pages       no unbound claim, no address of another site in what a page loads, our JavaScript per page in budget
transfer    what a visit costs until the first live picture, compressed
versions    stated once in pyproject.toml, the same in site/package.json and node_modules
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from servelab.build import assemble, assets, wheel
from servelab.build import runtime as python
from servelab.build.node import tree
from servelab.build.project import BuildError, Project
from servelab.receipt.verify import verify

OWN_JAVASCRIPT = 60_000
"""Bytes of our own modules that a page loads by itself, unminified."""

TRANSFER = {False: 8_000_000, True: 13_000_000}
"""Bytes until the first live picture, gzip; by whether the studio needs numpy."""

LOADS = re.compile(
    r"""(?:\b(?:src|srcset|poster|data|action)\s*=\s*|<link\b[^>]*\bhref\s*=\s*|\burl\(\s*|\bimport\s*\(?\s*|\bfrom\s+|\bfetch\(\s*)["']?((?:https?:)?//[^"'\s)>]+)""",
    re.IGNORECASE,
)
"""An address of another origin where a browser would load it; a plain link is the visitor's own choice."""

IMPORT = re.compile(r"""^\s*(?:import\b[^"'()]*?|export\b[^"'()]*?\bfrom\s*)["'](\.[^"']+)["']""", re.MULTILINE)
"""A static import of one of our modules; dynamic ones are loaded on demand."""

SCRIPT = re.compile(r"""<script\b(?![^>]*\bnomodule\b)[^>]*\bsrc="([^"]+)\"""")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`problems` and `notes` (what could not be checked here, what was measured), as sentences."""

    problems: list[str]
    notes: list[str]


def check(project: Project) -> Outcome:
    """Check the receipts, then build and look at the result."""
    report = verify(project.receipts)
    problems = [f"receipts/{problem}" for problem in report.problems]
    signers = ", ".join(report.signed_by) or "nobody"
    notes = [f"receipts/{path}: {again.note}" for path, again in report.recomputed.items()]
    notes += [f"receipts/{line}" for line in report.unchecked()]
    notes += [f"receipts: {len(report.receipts)} checked, {len(report.recomputed)} recomputed, signed by {signers}"]
    try:
        problems += assets.check_pins(project)
        python.check_vendor(project)
        folders = assemble.build(project)
    except BuildError as error:
        return Outcome([*problems, str(error)], notes)
    for folder in folders:
        name = folder.relative_to(project.dist).as_posix()
        problems += [f"{name}/{found}" for found in (*foreign(folder), *own_javascript(folder))]
    for cost in transfers(project, folders[0]):
        (problems if cost.over else notes).append(str(cost))
    return Outcome(problems, notes)


def foreign(site: Path) -> Iterator[str]:
    """Files of ours that would load something from another origin."""
    ours = [
        path
        for path in tree(site, (".html", ".css", ".mjs", ".js"))
        if not re.search(r"/assets/(vendor|pyscript|runtime)-", path.as_posix())
    ]
    for path in ours:
        for found in LOADS.finditer(path.read_text()):
            yield f"{path.relative_to(site)}: loads {found[1]}; everything has to come from the site itself"


def own_javascript(site: Path) -> Iterator[str]:
    """Pages whose modules are larger than the budget."""
    for page in tree(site, (".html",)):
        total = sum(path.stat().st_size for path in modules(page))
        if total > OWN_JAVASCRIPT:
            found = f"{total:,} bytes of our own JavaScript, {OWN_JAVASCRIPT:,} are allowed"
            yield f"{page.relative_to(site)}: {found}; load a part on demand"


def modules(page: Path) -> set[Path]:
    """Our modules that a page loads by itself: its scripts, the worker that it starts, and all their static imports."""
    html = page.read_text()
    found = [(page.parent / source).resolve() for source in SCRIPT.findall(html)]
    worker = re.search(r'"worker":\s*"([^"]+)"', html)
    if worker and found:
        found.append((page.parent / worker[1]).resolve())
    seen: set[Path] = set()
    while found:
        path = found.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        found += [(path.parent / name).resolve() for name in IMPORT.findall(path.read_text())]
    return seen


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes that a studio's page transfers until its first live picture, each file as gzip at level 9 or as stored."""

    page: str
    bytes: int
    budget: int

    @property
    def over(self) -> bool:
        return self.bytes > self.budget

    def __str__(self) -> str:
        size, budget = self.bytes / 1e6, self.budget / 1e6
        told = f"{self.page}: {size:.2f} MB (gzip) until the first live picture, {budget:.0f} MB allowed"
        return f"{told}; make the snapshot or the page smaller" if self.over else told


def transfers(project: Project, site: Path) -> Iterator[Cost]:
    """What each studio of dist/site costs a first visit that boots from the snapshot."""
    runtime = next((site / "assets").glob("runtime-*"))
    always = [
        runtime / name
        for name in ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm.gz", "snapshot.bin.gz", "empty.zip")
    ]
    shared = sorted((site / "assets").glob("shell-*/*.css"))
    for name in project.studio_names():
        page = site / name.replace("_", "-") / "index.html"
        needs = re.search(r'"needs":\[([^\]]*)\]', page.read_text())
        packages = re.findall(r'"([^"]+)"', needs[1]) if needs else []
        whole = any(package not in wheel.ROOMS for package in packages)
        extra = [path for package in packages for path in runtime.glob(f"{package}-*")]
        extra += [
            path
            for path in runtime.iterdir()
            if whole and path.suffix in (".zip", ".whl") and path.name.startswith(("python_", "servelab"))
        ]
        bundle = re.search(r'"bundle":"([^"]+)"', page.read_text())
        extra += [(page.parent / bundle[1]).resolve()] if bundle else []
        files = {page, *shared, *modules(page), *always, *extra}
        yield Cost(
            page.parent.name, sum(_wire(path) for path in files if path.is_file()), TRANSFER["numpy" in packages]
        )


def _wire(path: Path) -> int:
    if path.suffix in (".gz", ".zip", ".whl"):
        return path.stat().st_size
    return len(gzip.compress(path.read_bytes(), 9, mtime=0))
