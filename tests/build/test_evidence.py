"""What a build refuses to show: receipts that nobody signed as they lie there."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servelab.build import evidence
from servelab.build.project import BuildError, Project
from servelab.receipt.canonical import sha256

Elsewhere = Callable[..., Project]


def first(receipts: Path, kind: str) -> Path:
    return next((receipts / kind).glob("*.json"))


def envelope(receipts: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((receipts / "attestation.json").read_bytes())
    return value


def forged(receipts: Path) -> None:
    """A number changed, and its digest in the statement with it, without a new signature."""
    path = first(receipts, "kv_prefix")
    before = path.read_bytes()
    after = before.replace(b"36.64", b"99.64", 1)
    assert after != before
    path.write_bytes(after)
    value = envelope(receipts)
    payload = base64.b64decode(value["payload"]).replace(sha256(before).encode(), sha256(after).encode())
    value["payload"] = base64.b64encode(payload).decode()
    (receipts / "attestation.json").write_text(json.dumps(value))


def resigned(receipts: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = envelope(receipts)
    change(value)
    (receipts / "attestation.json").write_text(json.dumps(value))


def flipped(value: dict[str, Any]) -> None:
    raw = bytearray(base64.b64decode(value["signatures"][0]["sig"]))
    raw[5] ^= 1
    value["signatures"][0]["sig"] = base64.b64encode(bytes(raw)).decode()


OTHER = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
"""

SPOILS: dict[str, tuple[Callable[[Path], object], str]] = {
    "forged": (forged, "does not fit the statement"),
    "flipped": (lambda r: resigned(r, flipped), "does not fit the statement"),
    "unsigned": (lambda r: resigned(r, lambda v: v.update(signatures=[])), "no signature"),
    "no key": (lambda r: [p.unlink() for p in (r / "keys").glob("*.pub")], "unknown key"),
    "other key": (lambda r: [p.write_text(OTHER) for p in (r / "keys").glob("*.pub")], "unknown key"),
    "broken key": (lambda r: [p.write_text("x") for p in (r / "keys").glob("*.pub")], "not a public key in PEM"),
    "no attestation": (lambda r: (r / "attestation.json").unlink(), "missing: nobody stands behind these receipts"),
    "gone": (lambda r: first(r, "kv_prefix").unlink(), "attested, but the file is not here"),
    "changed": (lambda r: first(r, "kv_waste").write_bytes(first(r, "kv_waste").read_bytes() + b" "), "changed since"),
    "new": (lambda r: shutil.copy(first(r, "kv_pages"), r / "kv_pages/z-2026-01-01.json"), "not in the attestation"),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_build_shows_only_what_was_signed(elsewhere: Elsewhere, spoil: str) -> None:
    project = elsewhere("receipts")
    assert evidence.gather(project).attested
    act, why = SPOILS[spoil]
    act(project.receipts)
    with pytest.raises(BuildError, match=why):
        evidence.gather(project)


def test_build_py_leaves_with_1_and_names_what_is_wrong(elsewhere: Elsewhere) -> None:
    """And writes no page."""
    project = elsewhere("receipts", "build.py")
    forged(project.receipts)
    command = [sys.executable, str(project.root / "build.py"), "build", "--dist", str(project.dist)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: receipts/attestation.json: bad signature by ")
    assert not (project.dist / "site").exists()
