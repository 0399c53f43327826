"""The receipts folder: `<kind>/<device>-<date>.json` beside `schema/`, `keys/` and `attestation.json`.

receipts/
  kv_pages/core-2026-11-30.json   one receipt; the folder is its kind, the name ends in its date
  keys/servelab-2026-11.pub       public keys; the label names purpose and date
  schema/receipt-1.json           the published JSON Schema
  attestation.json                one signed statement over the bytes of all receipts
"""

from __future__ import annotations

from pathlib import Path

from servelab.receipt.canonical import parse, sha256
from servelab.receipt.schema import Receipt, read

ATTESTATION = "attestation.json"
KEYS = "keys"
OTHER = ("schema", KEYS)


def files(directory: Path) -> list[Path]:
    """Every receipt file in the folder, sorted by its relative name. ValueError when there is no such folder."""
    if not directory.is_dir():
        raise ValueError(
            f"there is no receipts folder at {str(directory)!r}; run from the repository root or pass --receipts DIR"
        )
    return sorted(p for p in directory.glob("*/*.json") if p.parent.name not in OTHER)


def load(source: Path | str | bytes, *, path: str = "") -> Receipt:
    """One receipt from a file or from its bytes; `path` is the name it goes by, by default the last two parts of the
    file's.

    ValueError names the receipt and the field that is wrong, a summary that its samples do not give included.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    name = path or ("" if isinstance(source, bytes) else "/".join(Path(source).parts[-2:]))
    try:
        return read(parse(data), path=name, sha256=sha256(data))
    except ValueError as error:
        raise ValueError(f"{name or 'receipt'}: {error}") from error


def load_all(directory: Path | str) -> dict[str, Receipt]:
    """The newest receipt of each kind, by date and then by name."""
    found = sorted((load(p) for p in files(Path(directory))), key=lambda r: (r.date, r.path))
    return {receipt.kind: receipt for receipt in found}


def expected_path(receipt: Receipt) -> str:
    """What the receipt's name must end in, given its kind and date."""
    return f"{receipt.kind}/<device>-{receipt.date}.json"
