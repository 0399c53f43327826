"""The `servelab` command called in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from servelab.cli import app


class Room:
    """One sub-command of it, as `servelab NAME …`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, *arguments: str) -> tuple[str, str, int]:
        """stdout, stderr, exit code."""
        done = CliRunner().invoke(app, [self.name, *arguments])
        return done.stdout, done.stderr, done.exit_code

    def out(self, *arguments: str) -> Any:
        """What --json prints."""
        text, error, code = self.call(*arguments, "--json")
        assert code == 0, error
        return json.loads(text)
