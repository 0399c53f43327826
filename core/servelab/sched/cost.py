"""What one engine iteration costs: the physics of a step, in whole picoseconds.

    step = cpu + max(launch, gpu)
    cpu  = host + seq·sequences + new·admitted
    gpu  = fixed + max(weights, token·tiles(tokens)) + context·ctx + work·pairs + logit·sampled + draft·passes,
           and pieces if prompts are in it

`fixed` is what the GPU does in every step however few the tokens, and the part of the weights' reading that no
computing hides; `weights` is the rest of that reading, `token` the matrix work of one token (so small batches are bound
by bandwidth, large ones by compute), `context` reading one token's KV in a decode, `work` one query–key pair of prefill
attention. Matrix kernels work in tiles, so tokens count in whole tiles. `launch` is the time in which the CPU can issue
the kernels: a captured graph for pure decodes, piecewise graphs for mixed steps of up to `graph_tokens` (the GPU loses
`pieces` between them), kernel by kernel beyond; a GPU that is faster than this waits. `draft` is one pass of the model
that guesses tokens for speculative decoding; each guess is a token of the step, and it is sampled.

An engine that overlaps prepares a step while the GPU is at the one before. Let its CPU be `ahead`: free that long
before that one's end. Kernels are issued from then + cpu to then + cpu + launch, and the GPU follows as they come:
the step takes max(max(0, cpu − ahead) + gpu, cpu + launch − ahead). The CPU is free for the next step when this one is
issued, or when the one before has ended. Step after step of one kind this comes to max(cpu + launch, gpu), which is
what decodes after decodes cost; one after prompts costs what its own CPU is `ahead` (`first`).

Along a run of equal decode steps only ctx grows, by one token per sequence and step, so a step costs
max(floor, base + slope·ctx): piecewise linear, in integers, summed and cut exactly (`total`, `reach`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import isqrt
from typing import NamedTuple


class Line(NamedTuple):
    """Cost of a decode step as a function of its context tokens: max(floor, base + slope·ctx), ps."""

    floor: int
    base: int
    slope: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Coefficients, ps unless said otherwise; all ≥ 0, and a step takes at least 1 ps.

    `tile` tokens per matrix tile; `swap` per KV block moved to or from host memory; `graph`, `mixed`, `eager` are the
    launch times of the three kinds of steps; `overlap`: the engine prepares the next step while the GPU works.
    """

    host: int = 0
    seq: int = 0
    new: int = 0
    fixed: int = 0
    pieces: int = 0
    weights: int = 0
    token: int = 0
    tile: int = 1
    context: int = 0
    work: int = 0
    logit: int = 0
    graph: int = 1
    mixed: int = 1
    eager: int = 1
    graph_tokens: int = 512
    swap: int = 0
    draft: int = 0
    overlap: bool = False

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            low = 1 if f.name in ("tile", "graph", "mixed", "eager") else 0
            if not isinstance(value, int) or not low <= value <= 10**15:
                raise ValueError(f"{f.name}={value!r} is outside {low}…10^15; give whole picoseconds (tokens for tile)")

    def slowed(self, slow: float) -> Cost:
        """On a host that takes `slow` times as long for all that is the CPU's."""
        if slow == 1:
            return self
        names = ("host", "seq", "new", "graph", "mixed", "eager")
        values = {name: getattr(self, name) for name in names}
        return replace(self, **{name: max(value > 0, round(value * slow)) for name, value in values.items()})

    def on_host(self, decodes: int, tokens: int, chunks: int, admitted: int) -> tuple[int, int]:
        """What the CPU does for a step, and to launch it."""
        launch: int = getattr(self, self.launch(decodes, tokens))
        return self.host + self.seq * (decodes + chunks) + self.new * admitted, launch

    def launch(self, decodes: int, tokens: int) -> str:
        """Which of the three launch times a step has."""
        if not tokens:
            return "graph"
        return "mixed" if decodes + tokens <= self.graph_tokens else "eager"

    def line(self, decodes: int, guesses: int = 0, passes: int = 0) -> Line:
        """Cost of a pure decode step of `decodes` ≥ 1 sequences, with `guesses` of all from `passes` of the draft."""
        host = self.host + self.seq * decodes
        tiles = -(-(decodes + guesses) // self.tile) * self.tile
        gpu = self.fixed + max(self.weights, self.token * tiles)
        gpu += self.logit * (decodes + guesses) + self.draft * passes
        if self.overlap:
            return Line(host + self.graph, gpu, self.context)
        return Line(host + self.graph, host + gpu, self.context)

    def step(
        self, decodes: int, ctx: int, tokens: int, work: int, chunks: int, admitted: int, sampled: int,
        ahead: int = 0, guesses: int = 0, passes: int = 0,
    ) -> tuple[int, int]:  # fmt: skip
        """Cost of a step with prefill: `tokens` in `chunks` with `work` pairs, beside decodes over `ctx` tokens.

        `ahead`: how long before the end of the last step the CPU was free, 0 if the engine was idle. Returns the same
        for the step after, too.
        """
        total = decodes + guesses + tokens
        host = self.host + self.seq * (decodes + chunks) + self.new * admitted
        launch = self.mixed if total <= self.graph_tokens else self.eager
        tiles = -(-total // self.tile) * self.tile
        gpu = self.fixed + self.pieces + max(self.weights, self.token * tiles)
        gpu += self.logit * (sampled + guesses) + self.draft * passes
        gpu += self.context * ctx + self.work * work
        if not self.overlap:
            return host + max(launch, gpu), 0
        took = max(1, max(0, host - ahead) + gpu, host + launch - ahead)
        return took, took - max(0, host + launch - ahead)

    def first(self, line: Line, gpu: int, ahead: int) -> int:
        """How much longer (or shorter) than in a run of its like a decode step takes when the CPU is `ahead`."""
        if not self.overlap:
            return 0
        took = max(1, max(0, line.floor - self.graph - ahead) + gpu, line.floor - ahead)
        return took - max(line.floor, gpu)

    def lead(self, line: Line, gpu: int) -> int:
        """How far ahead the CPU is at the end of a decode step in a run of its like."""
        return gpu if gpu >= line.floor else max(0, gpu - self.graph)


def total(line: Line, ctx: int, decodes: int, steps: int) -> int:
    """Time of `steps` decode steps; the first of them reads ctx + decodes tokens."""
    floor, base, slope = line
    first, rise = base + slope * ctx, slope * decodes  # step j costs max(floor, first + rise·j), j from 1
    if first + rise * steps <= floor:
        return floor * steps
    flat = min(steps, max(0, (floor - first) // rise)) if rise else 0
    return floor * flat + first * (steps - flat) + rise * (steps * (steps + 1) - flat * (flat + 1)) // 2


def reach(line: Line, ctx: int, decodes: int, span: int) -> int:
    """The least number of steps whose `total` is at least `span` (≥ 1 ps)."""
    floor, base, slope = line
    first, rise = base + slope * ctx, slope * decodes
    if not rise:
        return -(-span // max(floor, first))
    flat = max(0, (floor - first) // rise)
    if floor * flat >= span:
        return -(-span // floor)
    # 2·(span − floor·flat) ≤ 2·first·(k − flat) + rise·(k·(k + 1) − flat·(flat + 1)), solved for k
    b = 2 * first + rise
    c = 2 * (floor * flat - span) - 2 * first * flat - rise * flat * (flat + 1)
    k = max(flat + 1, (isqrt(max(0, b * b - 4 * rise * c)) - b) // (2 * rise))  # the root, rounded down
    return k if total(line, ctx, decodes, k) >= span else k + 1
