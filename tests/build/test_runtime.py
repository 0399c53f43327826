"""The runtime: what is in it, that it is the same twice, and that it computes what CPython computes."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servelab.build import evidence, node, runtime, wheel
from servelab.build.project import BuildError, Project
from servelab.view.control import to_query
from servelab.view.studio import studio

MAGIC_314 = (3627).to_bytes(2, "little") + b"\r\n"
UNCHECKED_HASH = (1).to_bytes(4, "little")


def test_the_wheel_has_the_core_and_no_commands(project: Project) -> None:
    names = set(wheel.sources(project))
    assert {"servelab/view/bridge.py", "servelab/kv/simulate.py", "servelab/receipt/recompute.py"} <= names
    assert "studios/kv_desk/view.py" in names
    unwanted = ("servelab/build/", "servelab/cli.py", "servelab/__main__.py", "attest.py", "command.py")
    assert not [name for name in names if any(part in name for part in unwanted)]
    imported = (b"import typer", b"from rich", b"import rich", b"cryptography", b"import js\n", b"import pyodide")
    assert not [name for name, data in wheel.sources(project).items() if any(word in data for word in imported)]


def test_libraries_are_byte_code_of_the_interpreter_that_loads_them(python: runtime.Runtime) -> None:
    for name in ("python_stdlib.zip", python.config["core"]["file"], python.config["packages"]["numpy"]["file"]):
        with zipfile.ZipFile(python.files[name]) as archive:
            entries = archive.infolist()
            compiled = [entry for entry in entries if entry.filename.endswith(".pyc")]
            assert compiled and not [entry for entry in entries if entry.filename.endswith(".py")]
            assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
            assert [entry.filename for entry in compiled] == sorted(entry.filename for entry in compiled)
            heads = {archive.read(entry)[:8] for entry in compiled}
        assert heads == {MAGIC_314 + UNCHECKED_HASH}


def test_a_wheel_lists_the_files_it_holds(python: runtime.Runtime) -> None:
    with zipfile.ZipFile(python.files[python.config["core"]["file"]]) as archive:
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        for line in archive.read(record).decode().splitlines():
            name, digest, size = line.rsplit(",", 2)
            if name == record:
                continue
            data = archive.read(name)
            wanted = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={wanted}", len(data))


def test_a_snapshot_made_again_elsewhere_is_the_same_bytes(
    project: Project,
    python: runtime.Runtime,
    elsewhere: Callable[..., Project],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another folder, time zone, language and home: a snapshot holds none of them."""
    for name, value in {"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    files, config = python.files, python.config
    site = tmp_path / "another place"
    with zipfile.ZipFile(files[config["core"]["file"]]) as archive:
        archive.extractall(site)
    pyodide = next(project.cache.glob("pyodide-*"))
    packages = ",".join(wheel.packages(project))
    copy = elsewhere("site/runtime", "site/static")
    node.node(copy, "snapshot.mjs", pyodide, files["python_stdlib.zip"], site, packages, tmp_path / "again.bin")
    runtime.compress(tmp_path / "again.bin")
    assert (tmp_path / "again.bin.gz").read_bytes() == files["snapshot.bin.gz"].read_bytes()


def test_every_preset_is_the_same_picture_in_pyodide(project: Project, in_node: Callable[..., dict[str, Any]]) -> None:
    proof = evidence.gather(project)
    bundle = bytes(evidence.folder(proof).files["bundle.json"]).decode()  # type: ignore[arg-type]
    calls, expected = [], []
    for name in project.studio_names():
        room = studio(name)
        if room.NEEDS:
            continue
        for preset in room.PRESETS.values():
            calls.append(["view", {"studio": name, "state": to_query(preset.state)}])
            expected.append(room.view(preset.state, proof.receipts).encode())
    for snapshot in (True, False):
        replies = in_node(calls, snapshot=snapshot, bundle=bundle)["replies"]
        for (_, params), reply, (header, buffers) in zip(calls, replies, expected, strict=True):
            assert reply["header"] == f'{{"frame":{header},"state":{json.dumps(params["state"], sort_keys=True)}}}'
            assert [base64.b64decode(text) for text in reply["buffers"]] == buffers


NUMPY = """
import numpy as np
str(int((np.arange(1, 101) ** 2).sum())) + " " + np.__version__
"""


@pytest.mark.parametrize("snapshot", [True, False])
def test_numpy_is_loaded_only_when_it_is_asked_for(snapshot: bool, in_node: Callable[..., dict[str, Any]]) -> None:
    answer = in_node([], snapshot=snapshot, packages=("numpy",), evaluate=NUMPY)
    assert answer["evaluated"] == "338350 2.4.3"  # n(n+1)(2n+1)/6 for n = 100
    missing = "import importlib.util\nstr(importlib.util.find_spec('numpy'))"
    assert in_node([], snapshot=snapshot, evaluate=missing)["evaluated"] == "None"


def test_without_a_package_neither_its_file_nor_its_lock_entry_is_left(python: runtime.Runtime) -> None:
    assert python.config["lock"]["packages"]["numpy"]["file_name"] in python.files
    slim = python.without({"numpy"})
    assert not [name for name in slim.files if name.startswith("numpy")]
    assert slim.config["packages"] == slim.config["lock"]["packages"] == {}
    assert slim.config["core"] == python.config["core"]


def test_sizes_in_the_config_are_those_of_the_files(python: runtime.Runtime) -> None:
    for part in (python.config[name] for name in ("wasm", "snapshot", "stdlib", "core")):
        data = python.files[part["file"]].read_bytes()
        assert len(data) == part["bytes"]
        assert len(gzip.decompress(data) if part["file"].endswith(".gz") else data) == part["raw"]


def test_a_changed_wheel_is_refused(elsewhere: Callable[..., Project]) -> None:
    changed = elsewhere("site/vendor")
    runtime.check_vendor(changed)
    path = next((changed.site / "vendor").glob("numpy-*.whl"))
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(BuildError, match=r"site/vendor/numpy-.*has sha256 .*pinned is .*restore it from git"):
        runtime.check_vendor(changed)


def test_another_pyodide_than_the_pinned_one_is_refused(elsewhere: Callable[..., Project]) -> None:
    changed = elsewhere("pyproject.toml")
    text = (changed.root / "pyproject.toml").read_text()
    (changed.root / "pyproject.toml").write_text(text.replace('pyodide = "314.0.4"', 'pyodide = "314.0.9"'))
    with pytest.raises(BuildError, match=r"pyodide 314\.0\.4, pyproject\.toml pins 314\.0\.9"):
        runtime.build(changed)


def test_no_docstring_of_the_standard_library_travels(python: runtime.Runtime) -> None:
    with zipfile.ZipFile(python.files["python_stdlib.zip"]) as archive:
        body = archive.read("textwrap.pyc")[16:]
    assert b"replace_whitespace" in body
    assert b"Wrap a single paragraph" not in body


def test_a_failing_tool_is_told_in_its_own_words(project: Project, tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text("[]")
    with pytest.raises(BuildError, match=r"site/runtime/precompile\.mjs failed: .*nowhere"):
        node.node(project, "precompile.mjs", tmp_path / "nowhere", tmp_path / "jobs.json")
