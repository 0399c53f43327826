"""Requests as KV memory sees them: text is segments of numbered contents, so equality costs spans and not tokens."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

MAX_SAMPLES = 1024
"""Bound on samples per request; it spaces the content ids of outputs."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt of segments (content id, tokens) and `output` tokens to generate, `samples` times.

    Token k of content c is the same token wherever it occurs, so equal segments are equal text; outputs have the
    content `output_content(id, sample)`, which a later turn may repeat. `arrival` is a tick, or ticks after request
    `after` ends. `salt` names the prefix-cache namespace, `chat` the conversation (default: the request itself).
    """

    id: int
    arrival: int
    prompt: tuple[tuple[int, int], ...]
    output: int
    samples: int = 1
    salt: Hashable = 0
    chat: int = -1
    after: int = -1
    label: str = ""

    @property
    def tokens(self) -> int:
        """Prompt length."""
        return sum(length for _, length in self.prompt)

    def __post_init__(self) -> None:
        if self.id < 0 or self.arrival < 0 or self.output < 0 or not 1 <= self.samples <= MAX_SAMPLES:
            raise ValueError(
                f"request {self.id}: arrival {self.arrival}, output {self.output}, samples {self.samples}; "
                f"use id, arrival and output of at least 0 and samples in 1…{MAX_SAMPLES}"
            )
        if self.tokens < 1 or any(length < 0 for _, length in self.prompt):
            raise ValueError(f"request {self.id}: prompt {self.prompt}; use segments of 0 or more tokens, 1 in all")


def output_content(request: int, sample: int = 0) -> int:
    """The content id of a request's generated text: −2 and below (−1 hashes like −2); text of prompts has 0 or more."""
    return -2 - (request * MAX_SAMPLES + sample)


def block_contents(segments: Sequence[tuple[int, int]], block_size: int) -> list[tuple[int, ...]]:
    """One tuple per full block: its spans (content, first token, tokens). Tuples are equal exactly if tokens are."""
    out: list[tuple[int, ...]] = []
    part: list[int] = []
    room = block_size
    for content, length in segments:
        start = 0
        while start < length:
            take = min(room, length - start)
            part += (content, start, take)
            start += take
            room -= take
            if not room:
                out.append(tuple(part))
                part, room = [], block_size
    return out
