"""The `servelab` command: one sub-command per room of the core, each with `--json`."""

from __future__ import annotations

import typer

from servelab import __version__
from servelab.kv.command import app as kv
from servelab.plan.command import app as plan
from servelab.receipt.command import app as receipts
from servelab.sched.command import app as sched

app = typer.Typer(
    name="servelab",
    help="LLM inference studios that show their receipts: the same core that runs in the browser.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(kv, name="kv", help="KV-cache memory: block pools, traces, bytes.")
app.add_typer(sched, name="sched", help="Scheduling: traffic through simulated engines, beside real ones.")
app.add_typer(plan, name="plan", help="Capacity: will it fit, how fast, at what price.")
app.add_typer(receipts, name="receipts", help="Measurements and their proofs: list, show, verify, attest.")


def _version(show: bool) -> None:
    if show:
        typer.echo(f"servelab {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Entry point of the console script and of `python -m servelab`."""
    app()
