"""Writes dist/site (all studios) and dist/spaces/<slug> (one studio each, self-contained)."""

from __future__ import annotations

import shutil
from pathlib import Path

from servelab.build import assets, evidence, pages
from servelab.build import runtime as python
from servelab.build.card import read_card
from servelab.build.project import BuildError, Project
from servelab.build.site import Site

MOST_FILES = 250
"""A Space below this many files is uploaded in one commit: old and new never mix."""

PLACE = '"__PRECACHE__"'
"""Where static/sw.js takes the address of its list."""


def build(project: Project, *, snapshot: bool = True) -> list[Path]:
    """Write dist; returns the folders that can be served or deployed. BuildError leaves the old dist as it was.

    `snapshot` False leaves the memory snapshot out: pages then boot from the precompiled files.
    """
    project.check_studios()
    proof = evidence.gather(project)
    rooms = pages.rooms(project, proof.receipts)
    runtime = python.build(project, snapshot=snapshot)
    fresh = project.dist.with_name(f".{project.dist.name}.new")
    sites = [Site(project, proof, rooms, runtime, fresh / "site", whole=True)]
    sites += [Site(project, proof, [room], runtime, fresh / "spaces" / room.slug, whole=False) for room in rooms]
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        for site in sites:
            write(site)
        shutil.rmtree(project.dist, ignore_errors=True)
        fresh.replace(project.dist)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return [project.dist / site.out.relative_to(fresh) for site in sites]


def write(site: Site) -> None:
    """One site's folders, pages, service worker, notices and card."""
    project = site.project
    for folder in site.folders.values():
        folder.write(site.out)
    made = pages.environment(project)
    plan = site.plan()
    for path, template, room in plan:
        _put(site.out / path, pages.render(made, template, site.context(path, room)))
    url, listing = assets.precache(site.version, *site.precached([path for path, _, _ in plan]))
    _put(site.out / url, listing)
    _put(site.out / "sw.js", _worker(project, url))
    _put(site.out / "NOTICE.txt", assets.notice(project))
    _put(site.out / "README.md", read_card(project, None if site.whole else site.rooms[0].name).encode())
    count = sum(path.is_file() for path in site.out.rglob("*"))
    if count >= MOST_FILES:
        raise BuildError(
            f"{site.out.name} has {count} files; a Space needs fewer than {MOST_FILES} to be uploaded in one commit"
        )


def _worker(project: Project, url: str) -> bytes:
    text = (project.static / "sw.js").read_text()
    if text.count(PLACE) != 1:
        raise BuildError(f"site/static/sw.js must hold {PLACE} exactly once; the build puts its list's address there")
    return text.replace(PLACE, f'"{url}"').encode()


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
