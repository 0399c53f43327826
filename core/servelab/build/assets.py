"""Files with a content hash in their folder's name: they never change, so browsers and hosts may keep them for ever.

assets/shell-<hash>/     our modules, style, icon (relative imports keep working)
assets/runtime-<hash>/   Python (runtime.py)
assets/vendor-<hash>/    Plotly, Ed25519, PyScript: loaded when first needed
assets/receipts-<hash>/  receipts as committed, their attestation and public keys
assets/frames-<hash>/    first pictures of the presets
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from servelab.build.node import compact, digest, tree
from servelab.build.project import BuildError, Project
from servelab.build.runtime import installed_version

SHORT = 12
"""Hex digits of a hash in a folder's name."""

VENDOR = {
    "plotly": ("plotly.js-cartesian-dist-min", "plotly-cartesian.min.js"),
    "noble": ("@noble/ed25519", "index.js"),
}
"""Name in a page's config → npm package and the one file of it that is loaded."""

PINNED = {
    "pyodide": "pyodide",
    "plotly": "plotly.js-cartesian-dist-min",
    "pyscript": "@pyscript/core",
    "noble_ed25519": "@noble/ed25519",
    "lighthouse": "lighthouse",
    "axe": "axe-core",
}
"""Name in [tool.servelab.runtime] → npm package."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of files, named by what is in it; `url` is relative to the site's root and ends in a slash."""

    name: str
    files: Mapping[str, bytes | Path]

    @property
    def url(self) -> str:
        parts = (part for name in sorted(self.files) for part in (name, self.files[name]))
        return f"assets/{self.name}-{digest(*parts)[:SHORT]}/"

    def write(self, root: Path) -> None:
        """Put the files under root/<url>."""
        for name, content in self.files.items():
            path = root / self.url / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read_bytes() if isinstance(content, Path) else content)


def shell(project: Project, *, code: bool = True) -> Folder:
    """Our own modules, style and icon; `code` False leaves the editor page's part out."""
    files = {path.relative_to(project.static).as_posix(): path for path in tree(project.static)}
    left_out = ("sw.js", "code/FILES.json")
    return Folder(
        "shell", {n: p for n, p in files.items() if n not in left_out and (code or not n.startswith("code/"))}
    )


def vendor(project: Project) -> Folder:
    """What pages load from npm packages when they first need it, each with its licence."""
    files: dict[str, bytes | Path] = {}
    for package, file in VENDOR.values():
        files[_vendored_name(package, file)] = project.npm(package, file)
        files[_vendored_name(package, "LICENSE")] = project.npm(package, "LICENSE")
    return Folder("vendor", files)


def vendor_urls(folder: Folder) -> dict[str, str]:
    """Config name → URL relative to the site's root."""
    return {name: folder.url + _vendored_name(package, file) for name, (package, file) in VENDOR.items()}


def pyscript(project: Project) -> Folder | None:
    """The files of @pyscript/core that the editor page loads (static/code/FILES.json); None without that page."""
    listing = project.static / "code" / "FILES.json"
    if not listing.is_file():
        return None
    names = json.loads(listing.read_text())["npm"]["@pyscript/core"]
    return Folder("pyscript", {name.split("/")[-1]: project.npm("@pyscript/core", name) for name in names})


def notice(project: Project) -> bytes:
    """NOTICE.txt: what is shipped with version and licence, and the licence texts that npm packages do not carry."""
    path = project.root / "NOTICE"
    if not path.is_file():
        raise BuildError("NOTICE is missing at the root of the repository; restore it from git")
    texts = [path.read_bytes()]
    for licence in tree(project.site / "vendor" / "licenses"):
        texts.append(f"\n\n{'=' * 78}\n{licence.stem}\n{'=' * 78}\n\n".encode() + licence.read_bytes())
    return b"".join(texts)


def precache(version: str, core: list[str], rest: list[str]) -> tuple[str, bytes]:
    """(URL, content) of the service worker's list: `core` is kept at once, `rest` when the browser is idle."""
    content = compact({"version": version, "core": sorted(core), "rest": sorted(rest)})
    return f"assets/precache-{digest(content)[:SHORT]}.json", content


def check_pins(project: Project) -> list[str]:
    """Sentences about versions that are not the same in pyproject.toml, site/package.json and node_modules."""
    declared = json.loads((project.site / "package.json").read_text())
    wanted = declared.get("dependencies", {}) | declared.get("devDependencies", {})
    out = []
    for pin, package in PINNED.items():
        version, here = project.pins.get(pin), installed_version(project, package)
        if wanted.get(package) != version:
            out.append(
                f"{package}: {wanted.get(package)} in site/package.json, {version} in pyproject.toml; make them equal"
            )
        elif here != version:
            out.append(f"{package}: node_modules has {here}, pinned is {version}; run npm ci in site/")
    return out


def _vendored_name(package: str, file: str) -> str:
    stem = package.removeprefix("@").replace("/", "-")
    return f"{stem}.LICENSE.txt" if file == "LICENSE" else f"{stem}.{'mjs' if 'noble' in package else 'js'}"
