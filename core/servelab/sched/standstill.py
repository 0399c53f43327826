"""Decodes that stand still while prompts are computed, or while their blocks are away: their next gap is longer."""

from __future__ import annotations


class Standstill:
    """How many decodes wait, and since when; in order of admission, the last admitted at the end."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []

    def add(self, count: int, since: int) -> None:
        """The `count` last admitted decodes have stood still since then."""
        self.rows.append((count, since))

    def all(self, n: int, since: int) -> None:
        """All n decodes stand still: those that did not yet, since then."""
        if rest := n - sum([count for count, _ in self.rows]):
            self.rows.insert(0, (rest, since))

    def last(self) -> int:
        """Since when the last admitted decode stands still, which it does no more; 0 where none does."""
        if not self.rows:
            return 0
        count, since = self.rows.pop()
        if count > 1:
            self.rows.append((count - 1, since))
        return since

    def end(self, n: int, start: int, extra: int = 0) -> list[tuple[int, int]]:
        """All n decodes go on at `start`, and take `extra` more: (how many, how much later their next token is)."""
        if not self.rows and not extra:
            return []
        rest = n - sum([count for count, _ in self.rows])
        late = [(count, start - since + extra) for count, since in self.rows]
        self.rows = []
        return [(count, ps) for count, ps in [*late, (rest, extra)] if count and ps]
