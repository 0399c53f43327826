"""Where everything lies in a checkout, and the few facts that the whole build shares."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

STUDIO_FILES = {
    "page.html.j2": "extend studio.html.j2 and fill its block prose, as studios/kv_desk/page.html.j2 does",
    "README.md": "a Space needs it; copy studios/kv_desk/README.md for the front matter and change its words",
}
"""What a studio has beside its view.py, and what to do where it is missing."""


class BuildError(ValueError):
    """The build cannot go on; the message says what is wrong, where, and how to mend it."""


@dataclass(frozen=True)
class Project:
    """A checkout at `root`; `dist` is where pages go (by default root/dist)."""

    root: Path
    dist: Path

    @classmethod
    def at(cls, root: Path, dist: Path | None = None) -> Project:
        """The checkout at `root`. BuildError when it is none."""
        if not (root / "pyproject.toml").is_file():
            raise BuildError(f"{root} has no pyproject.toml; run build.py from the repository root")
        root = root.resolve()
        return cls(root, dist.resolve() if dist is not None else root / "dist")

    @property
    def site(self) -> Path:
        return self.root / "site"

    @property
    def static(self) -> Path:
        return self.site / "static"

    @property
    def receipts(self) -> Path:
        return self.root / "receipts"

    @property
    def cache(self) -> Path:
        return self.root / ".cache" / "build"

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        return tomllib.loads((self.root / "pyproject.toml").read_text())

    @cached_property
    def version(self) -> str:
        return str(self.pyproject["project"]["version"])

    @cached_property
    def pins(self) -> dict[str, str]:
        """[tool.servelab.runtime]: the versions of what reaches a browser."""
        return {name: str(value) for name, value in self.pyproject["tool"]["servelab"]["runtime"].items()}

    @cached_property
    def commit(self) -> str:
        """HEAD of the checkout, "unknown" where there is no git history."""
        done = self.run_git("rev-parse", "HEAD")
        return done if done else "unknown"

    def run_git(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                ["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=False
            )
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    def npm(self, package: str, file: str = "") -> Path:
        """A file of an installed npm package. BuildError when it is not installed."""
        path = self.site / "node_modules" / package / file
        if not path.exists():
            raise BuildError(
                f"site/node_modules/{package}/{file} is missing; run npm ci --ignore-scripts in site/ (make build does)"
            )
        return path

    def studio_names(self) -> list[str]:
        """Folders under studios/ that hold a view.py, sorted."""
        return sorted(path.parent.name for path in (self.root / "studios").glob("*/view.py"))

    def check_studios(self) -> None:
        """BuildError for a studio whose page or card is not there."""
        for name in self.studio_names():
            for file, fix in STUDIO_FILES.items():
                if not (self.root / "studios" / name / file).is_file():
                    raise BuildError(f"studios/{name}/{file} is missing; {fix}")
