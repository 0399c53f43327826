"""Receipts on their way to the pages: as committed, indexed, bundled for the core, and as claims in prose."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from servelab.build.assets import Folder
from servelab.build.node import compact
from servelab.build.project import BuildError, Project
from servelab.receipt import Receipt, attest, load_all, resolve
from servelab.receipt.store import ATTESTATION, files
from servelab.receipt.verify import Skipped, attested


@dataclass(frozen=True, slots=True)
class Evidence:
    """The receipts of a build: newest by kind, and what was signed (path → sha256)."""

    receipts: dict[str, Receipt]
    attested: dict[str, str]
    directory: Path


def gather(project: Project) -> Evidence:
    """Load the receipts and what was signed.

    BuildError for a receipt that is unreadable, changed or unattested, one that is attested and gone, and for an
    attestation that no known key has signed.
    """
    directory = project.receipts
    unchecked: list[Skipped] = []
    try:
        receipts = load_all(directory)
        labels, problems = attested(directory, files(directory), unchecked)
    except ValueError as error:
        raise BuildError(str(error)) from error
    if unchecked:
        raise BuildError(f"receipts/{unchecked[0]}")
    if problems or not labels:
        raise BuildError(f"receipts/{problems[0] if problems else ATTESTATION + ': signed by nobody'}")
    return Evidence(receipts, attest.subjects(directory), directory)


def folder(evidence: Evidence, read: Mapping[str, Sequence[str]] | None = None) -> Folder:
    """The receipts as committed, attestation and public keys, index.json (for pages) and bundle.json (for the core).

    `read`: studio → the kinds that its view reads, for a bundle of its own, studios/<name>/bundle.json.
    """
    index = [_entry(receipt) for _, receipt in sorted(evidence.receipts.items())]
    content: dict[str, bytes | Path] = {
        "index.json": compact(index),
        "bundle.json": compact({kind: receipt.to_json() for kind, receipt in evidence.receipts.items()}),
        ATTESTATION: evidence.directory / ATTESTATION,
    }
    for name, kinds in (read or {}).items():
        content[f"studios/{name}/bundle.json"] = compact({kind: evidence.receipts[kind].to_json() for kind in kinds})
    content |= {f"{path.parent.name}/{path.name}": path for path in files(evidence.directory)}
    content |= {f"keys/{path.name}": path for path in sorted((evidence.directory / "keys").glob("*.pub"))}
    return Folder("receipts", content)


def config(shipped: Folder, root: str, studio: str = "") -> dict[str, Any]:
    """{index, bundle, attestation, keys: [{label, url}]}; `root` is the way from the page to the site's root."""
    url = root + shipped.url
    keys = [name for name in sorted(shipped.files) if name.startswith("keys/")]
    return {
        "index": f"{url}index.json",
        "bundle": f"{url}{f'studios/{studio}/' if studio else ''}bundle.json",
        "attestation": url + ATTESTATION,
        "keys": [{"label": Path(name).stem, "url": url + name} for name in keys],
    }


def rows(evidence: Evidence, url: str) -> list[dict[str, Any]]:
    """What the receipts page prints, one dict per kind; `url` is the receipts folder as that page sees it."""
    out = []
    for kind, receipt in sorted(evidence.receipts.items()):
        names = ", ".join(item.name for item in receipt.data)
        row = receipt.to_json() | _entry(receipt) | {"data": {"name": names} if names else None}
        out.append(row | {"kind": kind, "url": url + receipt.path})
    return out


def claims(evidence: Evidence, page: str) -> Callable[..., Markup]:
    """The template function `claim(id, digits=None)`; `page` is the receipts page as the template's page sees it.

    BuildError for a claim that no receipt binds, that was changed, or that left its tolerance.
    """

    def claim(name: str, digits: int | None = None) -> Markup:
        try:
            found = resolve(name, evidence.receipts, evidence.attested)
        except ValueError as error:
            raise BuildError(str(error)) from error
        told = ", ".join(filter(None, (found.evidence, f"n = {found.n:,}" if found.n else "", found.interval(digits))))
        return Markup(
            '<a class="claim" data-claim="{id}" data-evidence="{evidence}" href="{page}#{kind}" title="{told}">'
            '<data value="{value}">{text}</data></a>'
        ).format(
            id=name,
            evidence=found.evidence,
            page=page,
            kind=name.split(".")[0],
            told=told,
            value=json.dumps(found.value),
            text=found.text(digits),
        )

    return claim


def _entry(receipt: Receipt) -> dict[str, Any]:
    return {
        "kind": receipt.kind,
        "file": receipt.path,
        "url": receipt.path,
        "sha256": receipt.sha256,
        "evidence": receipt.evidence,
        "date": receipt.date,
        "claims": list(receipt.claims),
    }
