"""The real upload path of huggingface_hub, against a stand-in for the Hub on the loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_stub import TOKEN, Hub

ROOT = Path(__file__).parents[2]
Deploy = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def deploy(hub: Hub, built: Path, tmp_path: Path) -> Deploy:
    """build.py deploy in a process of its own, because huggingface_hub reads its address when it is imported."""

    def run(
        *arguments: str, token: str | None = TOKEN, endpoint: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment |= {"HF_ENDPOINT": endpoint or hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "hf")}
        environment |= {"HF_TOKEN": token} if token else {}
        environment |= {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        command = [sys.executable, str(ROOT / "build.py"), "deploy", "--dist", str(built), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_spaces_and_data_set_arrive_whole_and_old_files_go(hub: Hub, deploy: Deploy, built: Path) -> None:
    stale = ("spaces", "servelab/kv-desk")
    hub.repos[stale] = {".gitattributes": b"x", "assets/shell-old/app.mjs": b"old", "index.html": b"old"}
    done = deploy("--namespace", "servelab", "--datasets")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {repo: hub.sdk.get(repo) for repo in hub.repos} == {
        ("spaces", "servelab/servelab"): "static",
        ("spaces", "servelab/batcher"): "static",
        ("spaces", "servelab/kv-desk"): "static",
        ("spaces", "servelab/planner"): "static",
        ("datasets", "servelab/receipts"): "",
    }
    site, desk = hub.repos["spaces", "servelab/servelab"], hub.repos["spaces", "servelab/kv-desk"]
    assert {k: v for k, v in site.items() if k != ".gitattributes"} == contents(built / "site")
    assert {k: v for k, v in desk.items() if k != ".gitattributes"} == contents(built / "spaces/kv-desk")
    receipts = hub.repos["datasets", "servelab/receipts"]
    assert receipts["attestation.json"] == (ROOT / "receipts/attestation.json").read_bytes()
    assert b"in-toto" in receipts["README.md"]
    commits = {commit.repo: commit for commit in hub.commits}
    assert len(commits) == len(hub.commits) == 5, "one commit per repository: old and new never mix"
    assert commits[stale].deleted == ["assets/shell-old/app.mjs"]
    assert commits["spaces", "servelab/servelab"].message.startswith("Servelab 0.1.0, commit ")
    assert hub.storage, "large files went to large storage"


def test_a_second_deployment_changes_nothing(hub: Hub, deploy: Deploy) -> None:
    deploy("--namespace", "servelab")
    before, count = {repo: dict(files) for repo, files in hub.repos.items()}, len(hub.commits)
    done = deploy("--namespace", "servelab")
    assert done.returncode == 0, done.stderr
    assert hub.repos == before
    assert not [commit for commit in hub.commits[count:] if commit.added or commit.deleted]


def test_another_namespace_names_its_own_data_set(hub: Hub, deploy: Deploy) -> None:
    assert deploy().returncode == 0
    assert set(hub.repos) == {("spaces", f"tester/{name}") for name in ("servelab", "batcher", "kv-desk", "planner")}
    card = hub.repos["spaces", "tester/kv-desk"]["README.md"].decode()
    assert "- tester/receipts" in card and "servelab/receipts" not in card


def test_a_dry_run_tells_and_changes_nothing(hub: Hub, deploy: Deploy, built: Path) -> None:
    desk = contents(built / "spaces/kv-desk")
    snapshot = next(name for name in desk if name.endswith("snapshot.bin.gz"))
    kept = {"NOTICE.txt": desk["NOTICE.txt"], snapshot: desk[snapshot]}
    hub.repos["spaces", "servelab/kv-desk"] = {".gitattributes": b"x", "gone.js": b"1", "index.html": b"old", **kept}
    done = deploy("--dry-run", "--namespace", "servelab")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("space servelab/kv-desk", 1)[1].split("space servelab/")[0].splitlines()
    words = [line.split() for line in lines[1:]]
    assert ["delete", "gone.js"] in words
    assert ["change", f"{len(desk['index.html']):,}", "index.html"] in words
    assert [w[0] for w in words].count("add") == len(desk) - 3
    assert words[-1] == ["unchanged:", "2"]
    assert not hub.commits and not [line for line in hub.asked if line.startswith(("POST", "PUT"))]


def test_a_dry_run_without_token_or_network_lists_sizes_and_hashes(deploy: Deploy, built: Path) -> None:
    done = deploy("--dry-run", token=None)
    assert done.returncode == 0, done.stderr
    assert "not compared with what is online (no token)" in done.stdout
    for arguments in ((), ("--namespace", "somebody")):
        offline = deploy("--dry-run", *arguments, endpoint="http://127.0.0.1:9")
        assert offline.returncode == 0 and "the Hub does not answer" in offline.stdout
        assert offline.stderr == "", "nothing is tried again and again"
    refused = deploy("--dry-run", token="hf_wrong")
    assert refused.returncode == 0 and "the Hub refuses the token" in refused.stdout
    assert f"{(built / 'site/NOTICE.txt').stat().st_size:,}" in offline.stdout


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        ((), None, "no Hugging Face token; set HF_TOKEN"),
        ((), "hf_wrong", "the Hub refuses the token (401); set HF_TOKEN"),
        (("--namespace", "somebody-else"), TOKEN, "may not write to namespace 'somebody-else' (403)"),
        (("--namespace", "no/such name"), TOKEN, "namespace 'no/such name' is no name on the Hub"),
    ],
)
def test_errors_name_the_fix(arguments: tuple[str, ...], token: str | None, said: str, deploy: Deploy) -> None:
    done = deploy(*arguments, token=token)
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr


def test_nothing_built_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "build.py"), "deploy", "--dry-run", "--dist", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "run make build first" in done.stderr
