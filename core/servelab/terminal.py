"""What the commands share: a mistake in one line, a bar for long work, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text


@contextmanager
def errors() -> Iterator[None]:
    """A ValueError becomes one red line on stderr and exit code 2."""
    try:
        yield
    except ValueError as error:
        line = " ".join(str(error).split())
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), (line, "red")), soft_wrap=True)
        raise typer.Exit(2) from None


@contextmanager
def progress(label: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
    """A bar on stderr while the block runs, on a terminal only; it yields the function that moves it."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda share: bar.update(task, completed=share)


def print_json(value: Any) -> None:
    """Sorted, indented, in characters as they are."""
    typer.echo(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
