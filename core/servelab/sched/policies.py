"""Scheduling policies: who is next in the queue, and what a step is made of.

A step is `mixed` (every running sequence decodes one token, what is left of the budget goes to prompts, in chunks:
vLLM v1, after Sarathi-Serve, arXiv:2403.02310), `prompts` (whole prompts go first, in steps of their own in which
decodes stand still: Orca and vLLM v0), or `batch` (a batch starts when the one before it is complete, and a sequence
that ends early leaves its slot empty).

The queue is in order of a key, smallest first; a preempted sequence keeps its key. Ties go to the earlier request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from servelab.sched.request import Workload

Key = Callable[[Workload, int], int]


class Policy(NamedTuple):
    """`step`: "mixed", "prompts" or "batch". `key(work, request)`: place in the queue, None for order of arrival.

    `match`: whose prompt is cached the longest goes first, while no more than MATCHED wait.
    """

    step: str
    key: Key | None = None
    match: bool = False


MATCHED = 128
"""Waiting requests up to which a queue is put in order of what is cached (as SGLang does)."""


def work_left(work: Workload, i: int) -> int:
    """Tokens to compute, prompt and output, as if the output's length were known."""
    return work.prompt[i] + work.output[i]


def deadline(work: Workload, i: int) -> int:
    """When the first token is due, ps."""
    return work.arrival[i] + (work.due[i] if work.due else 0)


POLICIES: dict[str, Policy] = {
    "static": Policy("batch"),
    "continuous": Policy("prompts"),
    "chunked": Policy("mixed"),
    "sjf": Policy("mixed", work_left),
    "edf": Policy("mixed", deadline),
    "prefix": Policy("mixed", match=True),
}
"""Policies by name."""
