"""A plan and what comes of it: one model on one layout of one device under one load.

    throughput = clients · O / (TTFT + (O − 1) · TPOT)      output tokens/s of a replica, by Little's law
"""

from __future__ import annotations

from dataclasses import dataclass

from servelab.kv.limits import MAX_TOKENS, within
from servelab.plan import engines
from servelab.plan.devices import Device
from servelab.plan.engines import Interval
from servelab.plan.formats import Format, named
from servelab.plan.memory import Layout, Memory, memory
from servelab.plan.shapes import Shape
from servelab.plan.speed import Engine, Work, latencies, parts, prompt_time, regime, work

CHUNK = 8192
"""Prompt tokens that a step computes at most."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A closed loop of `clients`, each asking with `prompt` tokens and waiting for `output` more, again and again."""

    shape: Shape
    device: Device
    layout: Layout = Layout()
    quant: str = "bf16"
    kv: str = "bf16"
    prompt: int = 2048
    output: int = 256
    clients: int = 16
    engine: str = "vllm"

    def __post_init__(self) -> None:
        within("prompt", self.prompt, 1, MAX_TOKENS, "count the tokens of a prompt")
        within("output", self.output, 1, MAX_TOKENS, "count the tokens of an answer")
        within("clients", self.clients, 1, 10**6, "give the requests at once")

    @property
    def format(self) -> Format:
        return named(self.quant)


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes of a plan: seconds, output tokens/s, shares. Zeros where it does not fit, with memory.reason."""

    plan: Plan
    memory: Memory
    work: Work | None = None
    ttft: float = 0.0
    tpot: float = 0.0

    @property
    def fits(self) -> bool:
        return self.memory.fits

    @property
    def throughput(self) -> float:
        """Output tokens/s of the whole replica."""
        return self.plan.clients * self.plan.output / self.latency if self.fits else 0.0

    @property
    def latency(self) -> float:
        """Seconds from asking to the last token."""
        return self.ttft + (self.plan.output - 1) * self.tpot

    @property
    def per_device(self) -> float:
        """Output tokens/s of one device."""
        return self.throughput / self.plan.layout.ranks

    @property
    def per_user(self) -> float:
        """Output tokens/s that one client reads."""
        return 1 / self.tpot if self.tpot else 0.0

    @property
    def running(self) -> int:
        return min(self.plan.clients, self.memory.capacity)

    @property
    def regime(self) -> str:
        engine = engines.family(self.plan.engine, self.plan.shape.kind)
        return regime(self.work, engine) if self.work else ""

    def spent(self) -> dict[str, float]:
        """Seconds of a decode step by cause, and of a prompt."""
        if self.work is None:
            return {}
        engine = engines.family(self.plan.engine, self.plan.shape.kind)
        return parts(self.work, engine) | {"prompt": prompt_time(self.work, engine)}

    @property
    def step(self) -> float:
        """Seconds of a decode step, without what others' prompts take of it."""
        return sum(seconds for part, seconds in self.spent().items() if part != "prompt")

    def between(self, what: str) -> tuple[float, float]:
        """The interval of "ttft", "tpot", "latency" or "throughput": quantiles of how far off models were that no fit
        had seen. More time is less throughput."""
        if what == "throughput":
            slow = engines.interval("latency", self.plan.shape.kind)
            return self.throughput / slow.high, self.throughput / slow.low
        found: Interval = engines.interval(what, self.plan.shape.kind)
        return found.of(getattr(self, what))


def solve(plan: Plan, engine: Engine | None = None) -> Answer:
    """Memory and speed, on the plan's engine as fitted or as given.

    ValueError where a name or number is outside its limits; a plan that does not fit says why.
    """
    kind = plan.format
    held = plan.prompt + plan.output // 2  # by a sequence that is being answered, on average
    found = memory(
        plan.shape, plan.device, plan.layout, kind, plan.kv, held, plan.prompt + plan.output, plan.clients, CHUNK
    )
    if not found.fits:
        return Answer(plan, found)
    made = work(
        plan.shape, plan.device, plan.layout, kind, plan.kv, plan.prompt, plan.output, plan.clients, found.capacity
    )
    ttft, tpot = latencies(made, engine or engines.family(plan.engine, plan.shape.kind))
    return Answer(plan, found, made, ttft, tpot)
