"""Everything that can be wrong with a receipts folder, found without stopping at the first.

Four questions, kept apart: is each file *unmodified* (canonical, and the bytes that were attested), *signed by* whom,
does it hold *reproduced here* (recomputed now, on this machine), and do its claims stay inside their tolerances. What
cannot be recomputed here is listed with the reason and is no problem.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from servelab.receipt import attest
from servelab.receipt.canonical import check_canonical, sha256
from servelab.receipt.claims import broken
from servelab.receipt.recompute import Recomputation, recompute
from servelab.receipt.schema import PUBLISHED, Receipt
from servelab.receipt.store import ATTESTATION, KEYS, expected_path, files, load

DATA = "../shared/data"


@dataclass(frozen=True, slots=True)
class Problem:
    """`receipt`: its path, or the file of the folder that is wrong; `what`: one of the names below; `message`: with
    the fix.

    canonical, schema, name, recompute, data, tolerance, commit, changed, unattested, gone, attestation, signature,
    empty.
    """

    receipt: str
    what: str
    message: str

    def __str__(self) -> str:
        return f"{self.receipt}: {self.message}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """What could not be checked here, and why."""

    receipt: str
    part: str
    why: str

    def __str__(self) -> str:
        return f"{self.receipt}: {self.part} not checked: {self.why}"


@dataclass(frozen=True, slots=True)
class Report:
    """`signed_by`: labels of the keys whose signature fits. `recomputed`: path → what came out."""

    receipts: tuple[Receipt, ...]
    signed_by: tuple[str, ...]
    recomputed: Mapping[str, Recomputation]
    problems: tuple[Problem, ...]
    skipped: tuple[Skipped, ...]

    def unchecked(self) -> list[str]:
        """One line for each receipt and reason; of more than three parts, the first and how many more."""
        parts: dict[tuple[str, str], list[str]] = {}
        for s in self.skipped:
            parts.setdefault((s.receipt, s.why), []).append(s.part)
        told = {key: ", ".join(n) if len(n) < 4 else f"{n[0]} and {len(n) - 1} more" for key, n in parts.items()}
        return [f"{receipt}: not checked: {what}: {why}" for (receipt, why), what in told.items()]


def data_directory() -> Path:
    """Where outside data lies: SERVELAB_DATA, by default ../shared/data."""
    return Path(os.environ.get("SERVELAB_DATA") or DATA)


def verify(directory: Path, data: Path | None = None, *, signature: bool = True) -> Report:
    """Check every receipt of the folder. `data`: outside data, default `data_directory()`; `signature` False: before
    signing."""
    receipts: list[Receipt] = []
    problems = list(_strays(directory))
    skipped: list[Skipped] = []
    recomputed: dict[str, Recomputation] = {}
    paths = files(directory)
    for path in paths:
        receipt, found = _read(path)
        problems += found
        if receipt is not None:
            receipts.append(receipt)
            outside, notes = _outside(receipt, data if data is not None else data_directory())
            problems += [*_own(receipt), *(n for n in notes if isinstance(n, Problem))]
            skipped += [n for n in notes if isinstance(n, Skipped)]
            problems += _again(receipt, outside, recomputed, skipped)
    if not paths:
        problems.append(
            Problem(directory.name, "empty", "no receipt here; run the scripts in generate/ and commit what they write")
        )
    problems += _history(directory, receipts, skipped)
    signed_by: list[str] = []
    if signature and paths:
        signed_by, found = attested(directory, paths, skipped)
        problems += found
    return Report(tuple(receipts), tuple(signed_by), recomputed, tuple(problems), tuple(skipped))


def _strays(directory: Path) -> Iterator[Problem]:
    """Files that nobody reads where they lie, hidden ones apart, and a published schema that is not the code's."""
    schema = directory / "schema" / "receipt-1.json"
    known = {*files(directory), *(directory / KEYS).glob("*.pub"), directory / ATTESTATION, schema}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        if path.is_file() and path not in known and not any(part.startswith(".") for part in name.parts):
            message = "not read: a receipt is <kind>/<device>-<date>.json; move or remove it"
            yield Problem(name.as_posix(), "name", message)
    if schema.is_file() and (have := sha256(schema.read_bytes())) != PUBLISHED:
        message = f"sha256 {have[:16]}…, the published schema has {PUBLISHED[:16]}…; restore it from git"
        yield Problem("schema/receipt-1.json", "changed", message)


def _read(path: Path) -> tuple[Receipt | None, list[Problem]]:
    name = f"{path.parent.name}/{path.name}"
    data = path.read_bytes()
    problems = []
    try:
        check_canonical(data)
    except ValueError as error:
        problems.append(Problem(name, "canonical", str(error)))
    try:
        return load(data, path=name), problems
    except ValueError as error:
        return None, [*problems, Problem(name, "schema", str(error).removeprefix(f"{name}: "))]


def _own(receipt: Receipt) -> Iterator[Problem]:
    folder, file = receipt.path.split("/")
    if folder != receipt.kind or not file.endswith(f"-{receipt.date}.json"):
        yield Problem(
            receipt.path, "name", f"the path does not fit its kind and date; name it {expected_path(receipt)}"
        )
    for sentence in broken(receipt).values():
        yield Problem(receipt.path, "tolerance", sentence)


def _outside(receipt: Receipt, data: Path) -> tuple[list[bytes], list[Problem | Skipped]]:
    """The receipt's data files found anywhere under `data`, by name; a file of that name with other bytes is a
    problem."""
    found: list[bytes] = []
    notes: list[Problem | Skipped] = []
    for item in receipt.data:
        path = next(iter(sorted(data.rglob(item.name))), None) if data.is_dir() else None
        if path is None:
            why = f"{item.name} is not under {data}; set SERVELAB_DATA or --data to the folder that holds it"
            notes.append(Skipped(receipt.path, f"statistic from {item.name}", why))
        elif sha256(content := path.read_bytes()) != item.sha256:
            have = sha256(content)[:16]
            message = f"{item.name} under {data} has sha256 {have}…, the receipt names {item.sha256[:16]}…"
            notes.append(Problem(receipt.path, "data", message + "; put the named file there"))
        else:
            found.append(content)
    return found, notes


def _again(
    receipt: Receipt, outside: list[bytes], recomputed: dict[str, Recomputation], skipped: list[Skipped]
) -> Iterator[Problem]:
    try:
        result = recomputed[receipt.path] = recompute(receipt, outside)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        yield Problem(
            receipt.path, "recompute", f"cannot be recomputed: {type(error).__name__}: {error}; regenerate it"
        )
        return
    for row in result.rows:
        if not row.same:
            message = f"{row.metric}: committed {row.committed}, recomputed {row.recomputed} {row.unit}".rstrip()
            yield Problem(receipt.path, "recompute", f"{message}; restore the receipt from git or regenerate it")
    skipped += [Skipped(receipt.path, name, why) for name, why in result.missing.items()]


def attested(directory: Path, paths: list[Path], skipped: list[Skipped]) -> tuple[list[str], list[Problem]]:
    """(labels of the keys that signed exactly these files, what is wrong); `skipped` gains what cannot be checked."""
    labels: list[str] = []
    found: list[str] = []
    try:
        attestation = attest.read((directory / ATTESTATION).read_bytes())
        labels, found = attest.check_signatures(attestation, attest.public_keys(directory))
    except attest.NotInstalled:
        skipped.append(Skipped(ATTESTATION, "signature", "needs cryptography; pip install 'servelab[site]'"))
    except FileNotFoundError:
        message = "missing: nobody stands behind these receipts yet; run servelab receipts attest --key FILE"
        return [], [Problem(ATTESTATION, "attestation", message)]
    except ValueError as error:
        return [], [Problem(ATTESTATION, "attestation", str(error))]
    problems = [Problem(ATTESTATION, "signature", message) for message in found]
    here = {f"{p.parent.name}/{p.name}": sha256(p.read_bytes()) for p in paths}
    for name, digest in here.items():
        wanted = attestation.subjects.get(name)
        if wanted is None:
            problems.append(
                Problem(name, "unattested", "not in the attestation; run servelab receipts attest --key FILE")
            )
        elif wanted != digest:
            message = (
                f"changed since it was attested: sha256 {digest[:16]}…, attested {wanted[:16]}…; restore it from git"
            )
            problems.append(Problem(name, "changed", message))
    for name in attestation.subjects:
        if name not in here:
            problems.append(
                Problem(name, "gone", "attested, but the file is not here; restore it from git or attest again")
            )
    return labels, problems


def _history(directory: Path, receipts: list[Receipt], skipped: list[Skipped]) -> Iterator[Problem]:
    """Each receipt's commit is an ancestor of HEAD, where there is a whole history to ask."""
    shallow = _git(directory, "rev-parse", "--is-shallow-repository")
    why = (
        ""
        if shallow == (0, "false")
        else "a shallow clone"
        if shallow == (0, "true")
        else f"no git history here ({shallow[1]})"
    )
    for receipt in receipts:
        if why:
            skipped.append(Skipped(receipt.path, "commit", why))
        elif _git(directory, "merge-base", "--is-ancestor", receipt.commit, "HEAD")[0] != 0:
            message = f"commit {receipt.commit[:12]} is not in this history; regenerate it on a commit that is"
            yield Problem(receipt.path, "commit", message)


def _git(directory: Path, *arguments: str) -> tuple[int, str]:
    try:
        done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        return 127, f"git does not run: {error.strerror}"
    said = (done.stdout or done.stderr).strip().splitlines()
    return done.returncode, said[0] if said else ""
