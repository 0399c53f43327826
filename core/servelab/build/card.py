"""README.md of a Space: the front matter that Hugging Face reads, checked here instead of after the upload."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from servelab.build.project import BuildError, Project

COLOURS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
REQUIRED = (
    "title",
    "emoji",
    "colorFrom",
    "colorTo",
    "sdk",
    "app_file",
    "short_description",
    "license",
    "tags",
    "datasets",
)
OPTIONAL = ("fullWidth", "header", "thumbnail", "pinned", "models")
LONGEST = 60
"""Characters of short_description that the Hub shows."""


def card_path(project: Project, name: str | None) -> Path:
    """The card of a studio's Space, or of the Space with all pages (None)."""
    return project.site / "README.space.md" if name is None else project.root / "studios" / name / "README.md"


def read_card(project: Project, name: str | None) -> str:
    """The card's text. BuildError names the file and the field that the Hub would refuse."""
    path = card_path(project, name)
    shown = path.relative_to(project.root)
    if not path.is_file():
        raise BuildError(f"{shown} is missing; a Space needs it, with front matter: {', '.join(REQUIRED)}")
    text = path.read_text()
    problems = check(text)
    if problems:
        raise BuildError(f"{shown}: " + "; ".join(problems))
    return text


def check(text: str) -> list[str]:
    """Sentences about what is wrong with a Space card; none means that it is fit to be uploaded."""
    from huggingface_hub import SpaceCard  # half a second to import: only those who read cards pay for it

    if not re.match(r"---\n.*?\n---\n", text, re.DOTALL):
        return ["no front matter; begin the file with --- and end the block with ---"]
    try:
        data: dict[str, Any] = {key: value for key, value in vars(SpaceCard(text).data).items() if value is not None}
    except ValueError as error:
        return [f"front matter cannot be read ({error}); write it as YAML"]
    out = [f"{key} is missing" for key in REQUIRED if not data.get(key)]
    out += [f"{key} is not a key that static Spaces use; remove it" for key in data if key not in REQUIRED + OPTIONAL]
    if data.get("sdk") != "static":
        out.append(f"sdk is {data.get('sdk')!r}; write static")
    if data.get("app_file") != "index.html":
        out.append(f"app_file is {data.get('app_file')!r}; write index.html")
    out += [
        f"{key} is {data.get(key)!r}; use one of {', '.join(COLOURS)}"
        for key in ("colorFrom", "colorTo")
        if data.get(key) not in COLOURS
    ]
    if len(str(data.get("short_description", ""))) > LONGEST:
        out.append(f"short_description has {len(data['short_description'])} characters; {LONGEST} are shown")
    out += [
        f"{key} is {data.get(key)!r}; write a list"
        for key in ("tags", "datasets")
        if not isinstance(data.get(key), list)
    ]
    return out
