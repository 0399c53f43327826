"""The real checkout, its runtime from the cache, and one built site for all tests of this folder."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("jinja2", reason="build tests need the site extra")
if not (ROOT / "site/node_modules/pyodide").is_dir():
    pytest.skip("build tests need npm ci in site/ (make build does it)", allow_module_level=True)

from servelab.build import assemble, runtime  # noqa: E402
from servelab.build.project import Project  # noqa: E402


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The checkout that is tested, with a dist of its own and the shared cache."""
    return Project.at(ROOT, tmp_path_factory.mktemp("build") / "dist")


@pytest.fixture(scope="session")
def python(project: Project) -> runtime.Runtime:
    return runtime.build(project)


@pytest.fixture(scope="session")
def built(project: Project) -> Path:
    """A freshly built dist."""
    assemble.build(project)
    return project.dist


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[..., Project]:
    """A checkout whose named folders are copies that a test may spoil; everything else is the real one."""

    def make(*copied: str) -> Project:
        root = tmp_path / "checkout"
        root.mkdir()
        for name in ("pyproject.toml", "NOTICE", "LICENSE", "build.py", "core", "studios", "receipts", "site"):
            (root / name).symlink_to(ROOT / name)
        for name in copied:
            parent = root / Path(name).parent
            if parent.is_symlink():
                real = parent.resolve()
                parent.unlink()
                parent.mkdir()
                for entry in real.iterdir():
                    (parent / entry.name).symlink_to(entry)
            (root / name).unlink()
            source = ROOT / name
            shutil.copytree(source, root / name) if source.is_dir() else shutil.copy(source, root / name)
        return Project(root, tmp_path / "dist")

    return make


@pytest.fixture
def in_node(tmp_path: Path, project: Project, python: runtime.Runtime) -> Callable[..., dict[str, Any]]:
    """Run calls in Pyodide under Node: in_node(calls, snapshot=True, packages=("numpy",), evaluate=script)."""

    def run(
        calls: list[Any], *, snapshot: bool = True, packages: tuple[str, ...] = (), evaluate: str = "", bundle: str = ""
    ) -> dict[str, Any]:
        files, config = python.files, python.config
        job = {
            "runtime": str(next((project.cache).glob("pyodide-*"))),
            "snapshot": config["snapshot"] | {"file": str(files["snapshot.bin.gz"])} if snapshot else None,
            "stdlib": str(files["python_stdlib.zip"]),
            "core": str(files[config["core"]["file"]]),
            "rooms": [str(files[room["file"]]) for room in config["rooms"].values()],
            "packages": [str(files[config["packages"][name]["file"]]) for name in packages],
            "calls": calls,
            "evaluate": None,
            "bundle": None,
        }
        if bundle:
            (tmp_path / "bundle.json").write_text(bundle)
            job["bundle"] = str(tmp_path / "bundle.json")
        if evaluate:
            (tmp_path / "script.py").write_text(evaluate)
            job["evaluate"] = str(tmp_path / "script.py")
        (tmp_path / "job.json").write_text(json.dumps(job))
        command = ["node", str(Path(__file__).with_name("restore.mjs")), str(tmp_path / "job.json")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stderr or done.stdout)[-2000:]
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return run
