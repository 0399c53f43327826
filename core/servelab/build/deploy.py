"""Uploads the built folders as static Spaces, and the receipts as a data set, through huggingface_hub.

Each Space holds fewer files than one commit of upload_folder takes, so a visitor sees either the old site or the new
one. Files that are no longer built are deleted. `--dry-run` compares by content (git blob ids, sha256 of LFS files)
where a token and a network are at hand, and lists what would be sent where they are not.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, RepositoryNotFoundError

from servelab.build.node import tree
from servelab.build.project import BuildError, Project

HOME = "servelab"
"""The namespace that cards name; a deployment elsewhere names its own."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
UNREACHABLE: tuple[type[Exception], ...] = (
    OSError,
    *(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception)),
)
"""OSError and whatever the Hub's HTTP client raises when there is no answer."""

TOKEN = "set HF_TOKEN to a token with write access (huggingface.co/settings/tokens), or run: hf auth login"


@dataclass(frozen=True, slots=True)
class Target:
    """One repository of the Hub and the folder that it becomes."""

    name: str
    kind: Literal["space", "dataset"]
    folder: Path

    def repo(self, namespace: str) -> str:
        return f"{namespace}/{self.name}"


def targets(project: Project, *, datasets: bool) -> list[Target]:
    """What is deployed: the Space with all pages, one Space per studio, and the data sets when asked for."""
    site, spaces = project.dist / "site", project.dist / "spaces"
    if not (site / "index.html").is_file():
        raise BuildError(f"{site} has no index.html; run make build first")
    found = [Target("servelab", "space", site)]
    found += [Target(folder.name, "space", folder) for folder in sorted(spaces.iterdir())]
    return found + ([Target("receipts", "dataset", project.receipts)] if datasets else [])


def deploy(project: Project, *, namespace: str = "", dry_run: bool = False, datasets: bool = False) -> Iterator[str]:
    """Do it, a line per step. BuildError names the fix: no token, a namespace that is not the token's, no network."""
    if namespace and not NAME.fullmatch(namespace):
        raise BuildError(f"namespace {namespace!r} is no name on the Hub; use letters, digits, '-', '_' and '.'")
    api = HfApi(library_name="servelab", library_version=project.version)
    chosen = targets(project, datasets=datasets)
    if dry_run:
        yield from _dry_run(api, project, chosen, namespace)
        return
    with _explained(namespace):
        owner = namespace or str(api.whoami()["name"])
        for target in chosen:
            yield f"{target.kind} {target.repo(owner)}"
            yield f"  {_upload(api, project, target, owner)}"


def _upload(api: HfApi, project: Project, target: Target, namespace: str) -> str:
    """Create the repository if need be and make it equal to the folder; returns the commit's address."""
    repo = target.repo(namespace)
    sdk = "static" if target.kind == "space" else None
    api.create_repo(repo, repo_type=target.kind, space_sdk=sdk, exist_ok=True)
    with _staged(project, target, namespace) as folder:
        done = api.upload_folder(
            repo_id=repo,
            repo_type=target.kind,
            folder_path=folder,
            commit_message=f"Servelab {project.version}, commit {project.commit[:12]}",
            delete_patterns=["*"],
        )
    return str(done.commit_url)


@contextmanager
def _staged(project: Project, target: Target, namespace: str) -> Iterator[Path]:
    """A copy of the folder with the card that fits the namespace."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / target.name
        shutil.copytree(target.folder, folder)
        (folder / "README.md").write_text(card(project, target, namespace))
        yield folder


def card(project: Project, target: Target, namespace: str) -> str:
    """README.md of the repository, with the data set of this namespace."""
    path = project.site / "README.dataset.md" if target.kind == "dataset" else target.folder / "README.md"
    return path.read_text().replace(f"- {HOME}/receipts", f"- {namespace}/receipts")


@dataclass(frozen=True, slots=True)
class File:
    """A file's size and its two names on the Hub: git blob id, and sha256 for files in large storage."""

    size: int
    blob: str
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> File:
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        return cls(len(content), blob, hashlib.sha256(content).hexdigest())


def _local(project: Project, target: Target, namespace: str) -> dict[str, File]:
    files = {path.relative_to(target.folder).as_posix(): path for path in tree(target.folder)}
    listing = {name: File.of(path.read_bytes()) for name, path in files.items()}
    return listing | {"README.md": File.of(card(project, target, namespace).encode())}


def _remote(api: HfApi, target: Target, namespace: str) -> dict[str, tuple[str, str]]:
    """Path → (git blob id, sha256 or ""); empty when the repository does not exist yet."""
    from huggingface_hub.hf_api import RepoFile

    try:
        entries = list(api.list_repo_tree(target.repo(namespace), recursive=True, repo_type=target.kind))
    except RepositoryNotFoundError:
        return {}
    return {e.path: (e.blob_id, e.lfs.sha256 if e.lfs else "") for e in entries if isinstance(e, RepoFile)}


def _dry_run(api: HfApi, project: Project, chosen: list[Target], namespace: str) -> Iterator[str]:
    owner, why = namespace, "no token"
    if api.token or os.environ.get("HF_TOKEN"):
        try:  # asked with a namespace too: it is the one call that is not repeated for half a minute without a network
            name, why = str(api.whoami()["name"]), ""
            owner = owner or name
        except HfHubHTTPError as error:
            why = f"the Hub refuses the token: {_first_line(error)}"
        except UNREACHABLE as error:
            why = f"the Hub does not answer: {_first_line(error)}"
    owner = owner or HOME
    for target in chosen:
        local = _local(project, target, owner)
        size = sum(file.size for file in local.values()) / 1e6
        yield f"{target.kind} {target.repo(owner)}: {len(local)} files, {size:.1f} MB"
        if why:
            yield f"  not compared with what is online ({why}); would send:"
            yield from (f"  {file.size:>10,}  {file.sha256[:16]}  {name}" for name, file in sorted(local.items()))
        else:
            with _explained(namespace):
                yield from changes(local, _remote(api, target, owner))


def changes(local: Mapping[str, File], remote: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Lines "add|change|delete <path>", then a count of what stays."""
    same = 0
    for name in sorted(local.keys() | (remote.keys() - {".gitattributes"})):
        if name not in remote:
            yield f"  add     {local[name].size:>10,}  {name}"
        elif name not in local:
            yield f"  delete              {name}"
        elif remote[name] in ((local[name].blob, ""), (remote[name][0], local[name].sha256)):
            same += 1
        else:
            yield f"  change  {local[name].size:>10,}  {name}"
    yield f"  unchanged: {same}"


@contextmanager
def _explained(namespace: str) -> Iterator[None]:
    """Turn the Hub's errors into sentences with a fix."""
    try:
        yield
    except LocalTokenNotFoundError as error:
        raise BuildError(f"no Hugging Face token; {TOKEN}") from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status == 401:
            raise BuildError(f"the Hub refuses the token (401); {TOKEN}") from error
        if status == 403:
            whose = f"namespace {namespace!r}" if namespace else "this account"
            fix = "use a token with write access to it, or another --namespace"
            raise BuildError(f"the token may not write to {whose} (403); {fix}") from error
        raise BuildError(f"the Hub answers {status or 'nothing'}: {_first_line(error)}; try again later") from error
    except UNREACHABLE as error:
        raise BuildError(
            f"the Hub cannot be reached ({_first_line(error)}); check the network, or use --dry-run"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
