"""build | check | serve | deploy: pages from the core, the studios and the committed receipts. It never measures."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "core"), str(ROOT)]

try:
    import typer

    from servelab.build import assemble
    from servelab.build import check as checks
    from servelab.build import serve as server
    from servelab.build.project import BuildError, Project
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed here; use make, or . .venv/bin/activate first, which make sets up")

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
Dist = Annotated[Path | None, typer.Option(help="Where to write the pages; default dist/.")]


@app.command()
def build(
    dist: Dist = None, snapshot: Annotated[bool, typer.Option(help="Ship a memory snapshot: pages boot faster.")] = True
) -> None:
    """Write dist/site and dist/spaces/<studio>."""
    began = time.monotonic()
    for folder in assemble.build(Project.at(ROOT, dist), snapshot=snapshot):
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}: {size / 1e6:.1f} MB")
    print(f"built in {time.monotonic() - began:.1f} s")


@app.command()
def check(dist: Dist = None) -> None:
    """Verify receipts, claims, versions and budgets; exit 1 and name every problem."""
    outcome = checks.check(Project.at(ROOT, dist))
    for note in outcome.notes:
        print(f"note     {note}")
    for problem in outcome.problems:
        print(f"PROBLEM  {problem}")
    if outcome.problems:
        raise BuildError(f"{len(outcome.problems)} problem{'s' * (len(outcome.problems) > 1)}; see above")
    print("all checks passed")


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port on localhost; 0 picks a free one.")] = 8000,
    folder: Annotated[Path, typer.Option(help="A built site.")] = ROOT / "dist" / "site",
    check: Annotated[bool, typer.Option("--check", help="Only say whether the port is free; serve nothing.")] = False,
) -> None:
    """Serve a built site on this machine."""
    if check:
        return server.check_port(port)
    running = server.start(folder, port)
    print(f"Servelab is at {running.address}  (Ctrl+C stops it)", flush=True)
    try:
        running.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        running.server_close()
    return None


@app.command()
def deploy(
    namespace: Annotated[
        str, typer.Option(help="User or organisation on Hugging Face; default: the token's own.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change; upload nothing.")] = False,
    datasets: Annotated[bool, typer.Option("--datasets", help="Upload the data sets too.")] = False,
    dist: Dist = None,
) -> None:
    """Upload the built pages as static Spaces (needs HF_TOKEN)."""
    from servelab.build import deploy as hub

    project = Project.at(ROOT, dist)
    for line in hub.deploy(project, namespace=namespace, dry_run=dry_run, datasets=datasets):
        print(line, flush=True)


def main() -> None:
    """Run a command; a BuildError is told in one line."""
    try:
        app(standalone_mode=True)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
