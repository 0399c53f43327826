"""The signature against securesystemslib's own verifier, and forgeries."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
from small_receipts import Folder

from servelab.receipt import attest
from servelab.receipt.canonical import canonical, parse, sha256
from servelab.receipt.verify import verify


def envelope(folder: Folder) -> dict[str, Any]:
    value: dict[str, Any] = parse((folder.path / "attestation.json").read_bytes())
    return value


def write(folder: Folder, value: dict[str, Any]) -> None:
    (folder.path / "attestation.json").write_bytes(canonical(value))


def said(folder: Folder) -> list[str]:
    return [f"{p.what}: {p.message}" for p in verify(folder.path).problems]


def test_statement_lists_every_receipt_by_hash(folder: Folder) -> None:
    body = parse(base64.b64decode(envelope(folder)["payload"]))
    assert body["_type"] == "https://in-toto.io/Statement/v1"
    assert body["predicateType"] == "urn:servelab:receipts:1"
    wanted = {f"{p.parent.name}/{p.name}": sha256(p.read_bytes()) for p in folder.path.glob("*/core-*.json")}
    assert {s["name"]: s["digest"]["sha256"] for s in body["subject"]} == wanted
    assert attest.subjects(folder.path) == wanted


def test_signing_twice_gives_the_same_bytes(folder: Folder) -> None:
    """Ed25519 is deterministic, and the statement holds no clock."""
    before = (folder.path / "attestation.json").read_bytes()
    assert before == canonical(parse(before))
    folder.attest()
    assert (folder.path / "attestation.json").read_bytes() == before


def test_securesystemslib_verifies_it(folder: Folder) -> None:
    pem = attest.public_keys(folder.path)["example-2026-11"]
    key = SSlibKey(
        attest.key_id(pem),
        "ed25519",
        "ed25519",
        {"public": base64.b64decode(b"".join(pem.splitlines()[1:-1]))[-32:].hex()},
    )
    value = envelope(folder)
    signed = Envelope.from_dict(json.loads(json.dumps(value)))
    assert attest.pae(attest.PAYLOAD, signed.payload) == signed.pae()
    signed.verify([key], 1)
    value["payload"] = base64.b64encode(signed.payload + b" ").decode()
    with pytest.raises(VerificationError):
        Envelope.from_dict(value).verify([key], 1)


def test_forged_statement(folder: Folder) -> None:
    """Receipt and subject changed together, signature kept."""
    path = folder.edit("forecast", lambda r: r["metrics"]["speed"].update(value=99))
    value = envelope(folder)
    body = parse(base64.b64decode(value["payload"]))
    for subject in body["subject"]:
        if subject["name"].startswith("forecast"):
            subject["digest"]["sha256"] = sha256(path.read_bytes())
    write(folder, value | {"payload": base64.b64encode(canonical(body)).decode()})
    assert [m.split(";")[0] for m in said(folder)] == [
        "signature: bad signature by example-2026-11: it does not fit the statement"
    ]
    assert verify(folder.path).signed_by == ()


def test_signature_of_an_unknown_key(folder: Folder) -> None:
    (folder.path / "keys" / "example-2026-11.pub").unlink()
    (message,) = said(folder)
    assert message.startswith("signature: unknown key ") and "the keys in keys/ are none" in message


def test_key_id_is_only_a_hint(folder: Folder) -> None:
    """A stranger's signature under the known key's id does not pass."""
    other = folder.key.with_name("other.pem")
    attest.keygen(other, folder.path, "other")
    known = envelope(folder)["signatures"][0]["keyid"]
    attest.sign(folder.path, other)
    value = envelope(folder)
    value["signatures"][0]["keyid"] = known
    write(folder, value)
    assert said(folder)[0].startswith("signature: bad signature by example-2026-11")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"signatures": []}, "signature: no signature"),
        (
            {"payloadType": "text/plain"},
            "attestation: attestation.json is no attestation of receipts: payloadType 'text/plain' is not",
        ),
        ({"payload": "%%%"}, "attestation: attestation.json is no attestation of receipts: "),
        (
            {"payload": base64.b64encode(b"{}").decode()},
            "attestation: attestation.json is no attestation of receipts: '_type' is missing",
        ),
        (
            {"signatures": [{"sig": "AA=="}]},
            "attestation: attestation.json is no attestation of receipts: 'keyid' is missing",
        ),
    ],
)
def test_malformed(folder: Folder, change: dict[str, Any], why: str) -> None:
    write(folder, envelope(folder) | change)
    (message,) = said(folder)
    assert message.startswith(why)


def test_nobody_signed(folder: Folder) -> None:
    (folder.path / "attestation.json").unlink()
    assert said(folder) == [
        "attestation: missing: nobody stands behind these receipts yet; run servelab receipts attest --key FILE"
    ]
    with pytest.raises(ValueError, match="attestation.json is missing"):
        attest.subjects(folder.path)


def test_a_public_key_that_is_none(folder: Folder) -> None:
    (folder.path / "keys" / "broken.pub").write_text("hello")
    assert said(folder)[0].startswith("attestation: not a public key in PEM")


def test_keygen(folder: Folder, tmp_path: Path) -> None:
    private = tmp_path / "new.pem"
    public = attest.keygen(private, folder.path)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert private.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert public.parent.name == "keys" and public.name.startswith("servelab-20")
    assert public.read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----")
    with pytest.raises(ValueError, match="exists already; pick another"):
        attest.keygen(private, folder.path, "second")
    with pytest.raises(ValueError, match="lies inside the repository 'repository'; keep keys outside"):
        attest.keygen(folder.path / "private.pem", folder.path, "inside")
    assert not (folder.path / "private.pem").exists()


def test_signing_needs_a_known_ed25519_key(folder: Folder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no key file"):
        attest.sign(folder.path, tmp_path / "nowhere.pem")
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(ValueError, match="holds no unencrypted private key"):
        attest.sign(folder.path, tmp_path / "text.pem")
    (folder.path / "keys" / "example-2026-11.pub").unlink()
    with pytest.raises(ValueError, match=r"the public half of 'private\.pem' is not in keys/"):
        attest.sign(folder.path, folder.key)
