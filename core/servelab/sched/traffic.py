"""Traffic by name: the lengths and the burstiness of public traces, made again from a seed on a clean clone.

`NAMED` are Traffics at the rate of their trace. `sessions` makes prompts that share: chats that begin with one of a few
system prompts and send all they said before with every turn, as hash chains that prefix caches and routers can see.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from servelab.kv.limits import within
from servelab.sched import quantiles as q
from servelab.sched.arrivals import Lengths, Traffic
from servelab.sched.request import PS, Workload, column


def _like(prompt: tuple[float, ...], output: tuple[float, ...], rate: float, cv: float) -> Traffic:
    arrivals = "poisson" if cv == 1 else "gamma"
    return Traffic(rate, 1000, Lengths("table", table=prompt), Lengths("table", table=output), arrivals, cv)


NAMED: dict[str, Traffic] = {
    "azure-conversation": _like(q.AZURE_CONVERSATION_PROMPT, q.AZURE_CONVERSATION_OUTPUT, 5.53, 1.09),
    "azure-code": _like(q.AZURE_CODE_PROMPT, q.AZURE_CODE_OUTPUT, 2.57, 13.15),
    "mooncake-conversation": _like(q.MOONCAKE_CONVERSATION_PROMPT, q.MOONCAKE_CONVERSATION_OUTPUT, 3.40, 3.03),
    "sharegpt": _like(q.SHAREGPT_PROMPT, q.SHAREGPT_OUTPUT, 4.0, 1.0),
    "short": Traffic(20.0, 1000, Lengths("lognormal", 256, 0.8, 8, 2048), Lengths("lognormal", 64, 0.6, 4, 256)),
    "cplan": Traffic(1.5, 100, Lengths("uniform", low=64, high=511), Lengths("uniform", low=16, high=127)),
    "long": Traffic(4.0, 1000, Lengths("lognormal", 2048, 0.6, 64, 12000), Lengths("lognormal", 96, 0.6, 8, 384)),
}
"""Rates in requests/s and coefficients of variation of the time between arrivals as measured in each trace; ShareGPT
has no clock. cplan: the lengths of a published comparison of static and continuous batching."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """`count` chats of `turns` turns, new ones at `rate`/s, `think` s between a turn and the next.

    A chat begins with one of `systems` prompts of `system` tokens; each turn adds `fresh` tokens, the last answer
    included, and asks for `output`. Lengths are exponential around their means; blocks of `block` tokens.
    """

    count: int = 100
    turns: int = 5
    rate: float = 1.0
    think: float = 20.0
    systems: int = 4
    system: int = 1024
    fresh: int = 400
    output: int = 150
    block: int = 64

    def __post_init__(self) -> None:
        for name, most in (("count", 10**6), ("turns", 1000), ("systems", 10**6), ("fresh", 10**6), ("block", 65536)):
            within(name, getattr(self, name), 1, most, "give at least 1")
        within("system", self.system, 0, 10**7, "0 shares nothing")
        within("output", self.output, 1, 10**6, "give the mean answer")
        if not 1e-6 <= self.rate <= 1e6 or not 0 <= self.think <= 1e6:
            raise ValueError(f"rate {self.rate}/s and think {self.think} s: use 1e-6…1e6 chats/s and 0…1e6 s")


def sessions(plan: Sessions, seed: int) -> Workload:
    """The chats' requests in order of arrival, with the hash chain of every prompt's whole blocks."""
    rng, start, names = Random(f"{seed}/sessions"), 0.0, plan.systems * (plan.system // plan.block + 1)
    rows: list[tuple[int, int, int, int, tuple[int, ...]]] = []
    for _ in range(plan.count):
        start += rng.expovariate(plan.rate)
        first = rng.randrange(plan.systems) * (plan.system // plan.block + 1)
        chain = list(range(first, first + plan.system // plan.block))
        now, tokens = start, plan.system
        for _ in range(plan.turns):
            tokens += 1 + round(rng.expovariate(1 / plan.fresh))
            while len(chain) < tokens // plan.block:
                chain.append(names)
                names += 1
            answer = 1 + round(rng.expovariate(1 / plan.output))
            rows.append((round(now * 10**6), len(rows), tokens, answer, tuple(chain)))
            now += rng.expovariate(1 / plan.think) if plan.think else 0.0
    rows.sort()
    return Workload(
        column(t * (PS // 10**6) for t, *_ in rows), column(row[2] for row in rows), column(row[3] for row in rows),
        tuple(row[4] for row in rows), plan.block,
    )  # fmt: skip
