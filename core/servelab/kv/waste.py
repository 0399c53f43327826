"""Waste: the slots of a sequence's last block that no token fills (internal fragmentation), in three definitions.

A sequence of L tokens allocates A(L) = B·⌈L/B⌉ slots. Waste is Σ(A − L) / ΣA, over

    at completion         every request, L = prompt + output
    prompts only          every request, L = prompt
    over decode steps     every output token: as token j is sampled the cache holds L = prompt + j − 1 tokens, so L runs
                          through prompt … prompt + output − 1 (the last token is sampled and never stored)

Beside each stands the expectation for lengths that end anywhere in a block: (B − 1) / (2·L̄), as a share of the tokens.

Two length histograms decide all three: prompts and totals. The decode steps need no third one, since the lengths
p … t − 1 of one request are {1 … t − 1} less {1 … p − 1}: Σ over steps of f(L) = Σ over totals of F(t − 1) − Σ over
prompts of F(p − 1), with F(n) = f(1) + … + f(n) in closed form. Sums are exact integers.

Source: Kwon et al. 2023 (PagedAttention), section 3.1, for the kinds of waste.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from servelab.kv.limits import MAX_BLOCK, MAX_TOKENS, within
from servelab.kv.trace import Trace

BLOCK_SIZES = (8, 16, 32, 64, 128, 256)
DEFINITIONS = ("at_completion", "prompts_only", "over_decode_steps")

Histogram = tuple[tuple[int, int], ...]
"""(length in tokens, number of requests), by length."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """The sufficient statistic of a trace: histograms of its prompt lengths and of its total lengths."""

    prompt: Histogram
    total: Histogram

    def __post_init__(self) -> None:
        for name in ("prompt", "total"):
            pairs = getattr(self, name)
            within(f"{name} lengths", len(pairs), 1, MAX_TOKENS, "count at least one request")
            for length, count in pairs:
                within(f"{name} length", length, 1, 2 * MAX_TOKENS, "count tokens")
                within(f"{name} count", count, 1, 2**53, "count requests")
        prompts, totals = (sum(count for _, count in pairs) for pairs in (self.prompt, self.total))
        if prompts != totals:
            raise ValueError(f"{prompts:,} prompts and {totals:,} totals; count every request once in each histogram")

    @property
    def requests(self) -> int:
        return sum(count for _, count in self.prompt)

    def plain(self) -> dict[str, list[list[int]]]:
        """The same as lists of [length, count], for JSON; `lengths` reads it back."""
        return {"prompt": [list(pair) for pair in self.prompt], "total": [list(pair) for pair in self.total]}


@dataclass(frozen=True, slots=True)
class Slots:
    """Waste in one definition: `allocated` and `used` slots summed over `n` requests or decode steps."""

    block_size: int
    allocated: int
    used: int
    n: int

    @property
    def percent(self) -> float:
        """Wasted share of the allocated slots, %."""
        return 100 * (self.allocated - self.used) / self.allocated

    @property
    def expected_percent(self) -> float:
        """(B − 1) / (2·mean length), %."""
        return 100 * (self.block_size - 1) * self.n / (2 * self.used)

    def metrics(self) -> dict[str, int | float]:
        """The numbers by name, for tables and JSON."""
        return {
            "allocated_slots": self.allocated,
            "used_slots": self.used,
            "percent": self.percent,
            "expected_percent": self.expected_percent,
        }


def histograms(trace: Trace) -> Lengths:
    """The two length histograms of a trace."""
    totals = map(int.__add__, trace.prompt_tokens, trace.output_tokens)
    return Lengths(_count(trace.prompt_tokens), _count(totals))


def lengths(pairs: Mapping[str, Sequence[Sequence[int]]]) -> Lengths:
    """Lengths from their plain form; ValueError for anything else."""
    try:
        prompt, total = (tuple((length, count) for length, count in pairs[name]) for name in ("prompt", "total"))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no length histograms ({error!r}); give prompt and total, lists of [length, count]") from None
    return Lengths(prompt, total)


def waste(hist: Lengths, block_size: int) -> dict[str, Slots]:
    """Slots by definition, at `block_size` tokens per block."""
    b = within("block_size", block_size, 1, MAX_BLOCK, "16 is a common choice")
    steps = sum(t * c for t, c in hist.total) - sum(p * c for p, c in hist.prompt)
    allocated = _over(hist, lambda n: _allocated_to(n, b))
    used = _over(hist, lambda n: n * (n + 1) // 2)
    if steps < 1:
        raise ValueError(f"totals hold {steps:,} tokens more than prompts; every request has at least 1 output token")
    return {
        "at_completion": _whole(hist.total, b),
        "prompts_only": _whole(hist.prompt, b),
        "over_decode_steps": Slots(b, allocated, used, steps),
    }


def waste_table(hist: Lengths, block_sizes: Sequence[int] = BLOCK_SIZES) -> dict[str, int | float]:
    """Every number of `waste` as flat metrics: requests, decode_steps, then b16_at_completion_percent and so on."""
    out: dict[str, int | float] = {"requests": hist.requests}
    for b in block_sizes:
        for name, slots in waste(hist, b).items():
            out |= {f"b{b}_{name}_{key}": value for key, value in slots.metrics().items()}
            out["decode_steps"] = slots.n
    return out


def _count(values: Iterable[int]) -> Histogram:
    return tuple(sorted(Counter(values).items()))


def _whole(hist: Histogram, b: int) -> Slots:
    allocated = sum(-(-length // b) * b * count for length, count in hist)
    return Slots(b, allocated, sum(length * count for length, count in hist), sum(count for _, count in hist))


def _over(hist: Lengths, upto: Callable[[int], int]) -> int:
    return sum(upto(t - 1) * c for t, c in hist.total) - sum(upto(p - 1) * c for p, c in hist.prompt)


def _allocated_to(n: int, b: int) -> int:
    whole, rest = divmod(n, b)
    return b * b * whole * (whole + 1) // 2 + rest * b * (whole + 1)
