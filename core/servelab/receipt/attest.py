"""Who stands behind the receipts: one in-toto Statement over all of them, in a DSSE envelope signed with Ed25519.

Statement v1 {subject: [{name, digest.sha256}…], predicateType, predicate} ──PAE──▶ Ed25519 ──▶
receipts/attestation.json

A signature shows that the bytes are unmodified and who signed them; it does not show that a number is true. Signing
needs `securesystemslib` and `cryptography`, checking needs `cryptography`; reading the subjects needs neither.
Private keys stay outside the repository. Sources: in-toto Attestation Framework v1; DSSE v1.0 (signs PAE(type,
payload), never re-parses).
"""

from __future__ import annotations

import base64
import binascii
import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servelab.receipt.canonical import canonical, parse, sha256
from servelab.receipt.schema import SCHEMA
from servelab.receipt.store import ATTESTATION, KEYS, files

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:servelab:receipts:1"
PAYLOAD = "application/vnd.in-toto+json"
MEANING = "The signer ran each receipt's command at the commit it names. Integrity and origin, not truth."


class NotInstalled(ValueError):
    """A package of the site extra is not there: nothing is wrong, but nothing was checked either."""


@dataclass(frozen=True, slots=True)
class Attestation:
    """`subjects`: relative path → sha256. `payload`: the signed bytes. `signatures`: (key id, signature bytes)."""

    subjects: Mapping[str, str]
    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]


def statement(directory: Path) -> dict[str, Any]:
    """The in-toto Statement over every receipt in the folder as it lies on the disk."""
    subjects = [
        {"name": f"{p.parent.name}/{p.name}", "digest": {"sha256": sha256(p.read_bytes())}} for p in files(directory)
    ]
    if not subjects:
        raise ValueError(f"no receipt to attest in {str(directory)!r}; run a script of generate/ first")
    predicate = {"schema": SCHEMA, "receipts": len(subjects), "meaning": MEANING}
    return {"_type": STATEMENT, "subject": subjects, "predicateType": PREDICATE, "predicate": predicate}


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed."""
    return b"DSSEv1 %d %b %d %b" % (len(payload_type), payload_type.encode(), len(payload), payload)


def read(data: bytes) -> Attestation:
    """The statement in an envelope's bytes, signatures not yet checked. ValueError says what is malformed."""
    try:
        envelope = parse(data)
        if envelope["payloadType"] != PAYLOAD:
            raise ValueError(f"payloadType {envelope['payloadType']!r} is not {PAYLOAD!r}")
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = tuple((str(s["keyid"]), base64.b64decode(s["sig"], validate=True)) for s in envelope["signatures"])
        body = parse(payload)
        for key, value in (("_type", STATEMENT), ("predicateType", PREDICATE)):
            if body[key] != value:
                raise ValueError(f"{key} {body[key]!r} is not {value!r}")
        subjects = {s["name"]: s["digest"]["sha256"] for s in body["subject"]}
    except (KeyError, TypeError, AttributeError, ValueError, binascii.Error) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{ATTESTATION} is no attestation of receipts: {why}; run servelab receipts attest --key FILE"
        ) from error
    return Attestation(subjects, payload, signatures)


def subjects(directory: Path) -> dict[str, str]:
    """Relative path → sha256 as attested. ValueError when nothing is attested."""
    path = directory / ATTESTATION
    if not path.is_file():
        raise ValueError(f"{ATTESTATION} is missing in {str(directory)!r}; run servelab receipts attest --key FILE")
    return dict(read(path.read_bytes()).subjects)


def public_keys(directory: Path) -> dict[str, bytes]:
    """Label → SPKI PEM of every key that the project knows."""
    return {p.stem: p.read_bytes() for p in sorted((directory / KEYS).glob("*.pub"))}


def check_signatures(attestation: Attestation, keys: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    """(labels whose key signed these bytes, problems: an unknown key, a signature that does not fit, none at all)."""
    message = pae(PAYLOAD, attestation.payload)
    known = {key_id(pem): (label, pem) for label, pem in keys.items()}
    labels, problems = [], []
    for keyid, signature in attestation.signatures:
        if keyid not in known:
            names = ", ".join(sorted(keys)) or "none"
            problems.append(
                f"unknown key {keyid[:16]}…; the keys in {KEYS}/ are {names}; add the signer's .pub or sign again"
            )
        elif _fits(known[keyid][1], signature, message):
            labels.append(known[keyid][0])
        else:
            problems.append(
                f"bad signature by {known[keyid][0]}: it does not fit the statement; run servelab receipts attest again"
            )
    if not attestation.signatures:
        problems.append("no signature; run servelab receipts attest --key FILE")
    return labels, problems


def key_id(pem: bytes) -> str:
    """sha256 of the public key's SPKI DER: names a key whatever its file is called."""
    lines = pem.decode("ascii", "replace").strip().splitlines()
    try:
        if not lines or "PUBLIC KEY" not in lines[0]:
            raise ValueError("no PUBLIC KEY header")
        return sha256(base64.b64decode("".join(lines[1:-1]), validate=True))
    except ValueError as error:
        raise ValueError(
            f"not a public key in PEM ({error}); a .pub file holds -----BEGIN PUBLIC KEY----- and base64"
        ) from error


def sign(directory: Path, key: Path) -> tuple[Path, str]:
    """Write the attestation, signed with the private key in `key`; the file's path and the label of its public key."""
    private = _private(key)
    public = _public_pem(private)
    label = next((name for name, pem in public_keys(directory).items() if key_id(pem) == key_id(public)), None)
    if label is None:
        raise ValueError(
            f"the public half of {key.name!r} is not in {KEYS}/; servelab receipts keygen makes a pair and adds it"
        )
    dsse, signer = _site("securesystemslib.dsse"), _site("securesystemslib.signer")
    identity = signer.SSlibKey(key_id(public), "ed25519", "ed25519", {"public": _raw(private).hex()})
    envelope = dsse.Envelope(canonical(statement(directory)), PAYLOAD, {})
    envelope.sign(signer.CryptoSigner(private, identity))
    path = directory / ATTESTATION
    path.write_bytes(canonical(envelope.to_dict()))
    return path, label


def keygen(out: Path, directory: Path, label: str = "") -> Path:
    """Make a pair: the private PEM (mode 0600) at `out`, outside any repository, the public one in keys/<label>.pub."""
    inside = next((p for p in out.resolve().parents if (p / ".git").exists()), None)
    if inside is not None:
        raise ValueError(
            f"{str(out)!r} lies inside the repository {inside.name!r}; keep keys outside, e.g. --out ~/servelab.pem"
        )
    name = label or f"servelab-{datetime.date.today():%Y-%m}"
    public_path = directory / KEYS / f"{name}.pub"
    for path in (out, public_path):
        if path.exists():
            raise ValueError(f"{path.name!r} exists already; pick another --out or --label, keys are never overwritten")
    ed25519, serial = (
        _site("cryptography.hazmat.primitives.asymmetric.ed25519"),
        _site("cryptography.hazmat.primitives.serialization"),
    )
    private = ed25519.Ed25519PrivateKey.generate()
    pem = private.private_bytes(serial.Encoding.PEM, serial.PrivateFormat.PKCS8, serial.NoEncryption())
    with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
    public_path.parent.mkdir(parents=True, exist_ok=True)
    public_path.write_bytes(_public_pem(private))
    return public_path


def _site(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise NotInstalled(f"keys and signatures need {module.split('.')[0]}; pip install 'servelab[site]'") from error


def _private(path: Path) -> Any:
    serial = _site("cryptography.hazmat.primitives.serialization")
    ed25519 = _site("cryptography.hazmat.primitives.asymmetric.ed25519")
    if not path.is_file():
        raise ValueError(f"there is no key file {str(path)!r}; make one with servelab receipts keygen --out FILE")
    try:
        private = serial.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path.name!r} holds no unencrypted private key in PEM; make one with servelab receipts keygen"
        ) from error
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise ValueError(
            f"{path.name!r} holds a {type(private).__name__}, not an Ed25519 key; servelab receipts keygen makes one"
        )
    return private


def _public_pem(private: Any) -> bytes:
    serial = _site("cryptography.hazmat.primitives.serialization")
    pem: bytes = private.public_key().public_bytes(serial.Encoding.PEM, serial.PublicFormat.SubjectPublicKeyInfo)
    return pem


def _raw(private: Any) -> bytes:
    raw: bytes = private.public_key().public_bytes_raw()
    return raw


def _fits(pem: bytes, signature: bytes, message: bytes) -> bool:
    public = _site("cryptography.hazmat.primitives.serialization").load_pem_public_key(pem)
    try:
        public.verify(signature, message)
    except _site("cryptography.exceptions").InvalidSignature:
        return False
    return True
