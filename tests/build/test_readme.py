"""The README against the tree and the tools: what it lists exists, what exists is listed, its commands run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from servelab.cli import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
TREE = re.search(r"## The tree\n+```text\n(.*?)```", README, re.DOTALL)
COMMANDS = [line.removeprefix("$ servelab ").split() for line in README.splitlines() if line.startswith("$ servelab ")]


def listed() -> dict[str, Path]:
    """Every path of the tree, from its indentation."""
    assert TREE, "README.md has no section 'The tree' with a text block"
    out, parent = {}, ROOT
    for line in TREE[1].splitlines():
        name = line.split()[0]
        if not line.startswith(" "):
            parent = ROOT / name
        out[line] = parent if not line.startswith(" ") else parent / name
    return out


def test_every_listed_path_exists() -> None:
    assert {line: path for line, path in listed().items() if not path.exists()} == {}


def test_every_folder_at_the_top_is_listed() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    top = {name.split("/")[0] for name in files if "/" in name and not name.startswith(".")}
    shown = {path.relative_to(ROOT).parts[0] for path in listed().values()}
    assert top <= shown


def test_the_rooms_of_the_core_are_listed() -> None:
    rooms = {path.name for path in (ROOT / "core/servelab").iterdir() if (path / "__init__.py").is_file()}
    assert rooms == {path.name for path in listed().values() if path.parent.name == "servelab" and path.is_dir()}


def test_its_pictures_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures == ["site/batcher.png", "site/kv-desk.png", "site/planner.png"]
    assert all((ROOT / picture).stat().st_size < 400_000 for picture in pictures)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_its_commands_are_commands(command: list[str]) -> None:
    """Each `$ servelab …` line names a sub-command whose help lists every option that the line uses."""
    words = [word for word in command if not word.startswith("-")]
    shown = CliRunner().invoke(app, [*words[:2], "--help"], env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    assert shown.exit_code == 0, shown.output
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.output)
    assert [word for word in command if word.startswith("--") and word not in plain] == []


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make (\w+)", README))))
def test_its_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
