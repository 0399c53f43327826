"""`servelab receipts`: list, show, verify, attest, keygen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from servelab.receipt import attest as signing
from servelab.receipt import claims, store
from servelab.receipt.recompute import Recomputation
from servelab.receipt.schema import Receipt
from servelab.receipt.verify import Report
from servelab.receipt.verify import verify as check

app = typer.Typer(help="Receipts: the evidence behind every number.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--receipts", help="The receipts folder.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
HERE = Path("receipts")


@app.command("list")
def list_(receipts: Folder = HERE, as_json: Json = False) -> None:
    """Every receipt: kind, evidence, date, claims."""
    with _errors():
        found = [store.load(p) for p in store.files(receipts)]
    rows = [
        {
            "kind": r.kind,
            "file": r.path,
            "evidence": r.evidence,
            "date": r.date,
            "system": r.system,
            "claims": len(r.claims),
        }
        for r in found
    ]
    if as_json:
        return _print_json(rows)
    shown = ("kind", "file", "evidence", "date", "claims")
    table = Table(*(Column(name, overflow="fold") for name in shown))
    for row in rows:
        table.add_row(*(str(row[name]) for name in shown))
    return Console().print(table)


@app.command()
def show(
    receipt: Annotated[
        str, typer.Argument(help="A kind, a path inside the folder, or a claim: kv_pages, kv_pages.shared_blocks.")
    ],
    receipts: Folder = HERE,
    as_json: Json = False,
) -> None:
    """One receipt: its numbers, where they come from, and what they do not say."""
    with _errors():
        found = _find(receipt, receipts)
    if as_json:
        return _print_json(found.to_json())
    console = Console()
    console.print(
        f"[bold]{found.kind}[/bold] · {found.evidence} · {found.date} · commit {found.commit[:12]} · {found.path}"
    )
    console.print(
        f"{escape(found.command)}  ({', '.join(f'{d.name} {d.sha256[:16]}…' for d in found.data) or 'no outside data'})"
    )
    table = Table("metric", "value", "95 % interval", "n")
    for name, m in found.metrics.items():
        interval = "" if m.ci95 is None else f"{claims.number(m.ci95[0])} to {claims.number(m.ci95[1])}"
        table.add_row(name, claims.number(m.value, m.unit), interval, f"{m.n:,}")
    console.print(table)
    for sentence in (*found.losses, *(found.assumptions or ())):
        console.print(f"· {escape(sentence)}")
    return None


@app.command()
def verify(
    receipts: Folder = HERE,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Outside data.", envvar="SERVELAB_DATA", show_default="../shared/data", metavar="DIR"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check bytes, signature, history, tolerances, and recompute every number that can be. Exit 1 when something is
    wrong."""
    with _errors():
        report = check(receipts, data)
    if as_json:
        _print_json(_report(report))
    else:
        _show(report)
    if report.problems:
        raise typer.Exit(1)


@app.command()
def attest(
    key: Annotated[
        Path, typer.Option("--key", help="Private key in PEM, kept outside the repository.", metavar="FILE")
    ],
    receipts: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Sign one statement over all receipts, after checking everything but the signature."""
    with _errors():
        report = check(receipts, signature=False)
        if report.problems:
            raise ValueError("nothing signed:\n" + "\n".join(map(str, report.problems)))
        path, label = signing.sign(receipts, key)
    if as_json:
        return _print_json({"attestation": str(path), "key": label, "receipts": len(report.receipts)})
    return Console().print(f"{len(report.receipts)} receipts signed by {label}: {path}", soft_wrap=True)


@app.command()
def keygen(
    out: Annotated[Path, typer.Option("--out", help="Where the private key goes (mode 0600).", metavar="FILE")],
    label: Annotated[
        str, typer.Option("--label", help="Purpose and date.", show_default="servelab-<year>-<month>")
    ] = "",
    receipts: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Make an Ed25519 pair: the private key at --out, the public one in receipts/keys/<label>.pub."""
    with _errors():
        public = signing.keygen(out, receipts, label)
    if as_json:
        return _print_json({"private": str(out), "public": str(public), "label": public.stem})
    return Console().print(f"private key: {out} (keep it out of git)\npublic key: {public} (commit it)", soft_wrap=True)


@contextmanager
def _errors() -> Iterator[None]:
    """A ValueError or a refused file becomes one message and exit code 2."""
    try:
        yield
    except (ValueError, OSError) as error:
        Console(stderr=True).print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True, highlight=False)
        raise typer.Exit(2) from error


def _find(name: str, directory: Path) -> Receipt:
    for path in store.files(directory):
        if f"{path.parent.name}/{path.name}" == name.removeprefix("receipts/"):
            return store.load(path)
    newest = store.load_all(directory)
    if (kind := name.partition(".")[0]) in newest:
        return newest[kind]
    raise ValueError(
        f"there is no receipt {name!r}; use one of {', '.join(newest) or 'none: run a script of generate/ first'}"
    )


def _report(report: Report) -> dict[str, Any]:
    return {
        "receipts": [r.path for r in report.receipts],
        "signed_by": list(report.signed_by),
        "problems": [asdict(p) for p in report.problems],
        "skipped": [asdict(s) for s in report.skipped],
        "recomputed": {path: [asdict(row) for row in again.rows] for path, again in report.recomputed.items()},
    }


def _show(report: Report) -> None:
    console = Console()
    changed = {p.receipt for p in report.problems if p.what in ("canonical", "schema", "changed", "unattested")}
    table = Table(
        *(Column(name, overflow="fold") for name in ("receipt", "unmodified", "signed by", "reproduced here"))
    )
    unknown = any(s.part == "signature" for s in report.skipped)
    signed = ", ".join(report.signed_by) or ("not checked" if unknown else "nobody")
    same = "yes" if report.signed_by else "as attested" if unknown else "not attested"
    for receipt in report.receipts:
        unmodified = "no" if receipt.path in changed else same
        table.add_row(receipt.path, unmodified, signed, _reproduced(report.recomputed.get(receipt.path)))
    console.print(table)
    for line in report.unchecked():
        console.print(f"[dim]·[/dim] {escape(line)}", soft_wrap=True, highlight=False)
    for problem in report.problems:
        console.print(f"[bold red]✗[/bold red] {escape(str(problem))}", soft_wrap=True, highlight=False)
    console.print(
        f"{len(report.receipts)} receipts, {len(report.problems)} problems, {len(report.skipped)} parts not checked"
    )


def _reproduced(again: Recomputation | None) -> str:
    if again is None:
        return "no"
    numbers, parts = ([row.same for row in again.rows if row.statistic is kind] for kind in (False, True))
    text = f"{sum(numbers)} of {len(numbers) + len(again.missing)} numbers"
    if again.absent:
        return f"{text} (statistic as committed)"
    return text + ((" and the statistic" if all(parts) else ", not the statistic") if parts else "")


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
