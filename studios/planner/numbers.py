"""The planner's headline and tiles, each number with the formula that it is from and the values in it."""

from __future__ import annotations

from servelab.plan import engines
from servelab.plan.devices import GIB
from servelab.plan.money import per_million, rent
from servelab.plan.plan import Answer
from servelab.view.metric import Metric

How = tuple[tuple[str, str], ...]


def headline(answer: Answer) -> str:
    """One sentence for who hears the page."""
    made = answer.plan
    what = f"{made.shape.name} ({made.quant}) on {made.layout.ranks} × {made.device.name}"
    if not answer.fits:
        return f"{what} does not fit: {answer.memory.reason}."
    waits = made.clients - answer.running
    queue = f", {waits:,} of {made.clients:,} clients wait" if waits else ""
    return (
        f"{what}: {answer.throughput:,.0f} tokens/s, first token after {answer.ttft * 1e3:,.0f} ms, then one every "
        f"{answer.tpot * 1e3:,.1f} ms{queue}; limited by {answer.regime}."
    )


def tiles(answer: Answer, terms: str, busy: float) -> list[Metric]:
    """Memory, room, latencies with their intervals, throughput and price. Dashes where the plan does not fit."""
    m, fits = answer.memory, answer.fits
    used = m.weights + m.activations + m.runtime + m.kv if fits else m.weights + m.activations + m.runtime + m.sequence
    hourly = rent(answer.plan.device.name, terms)
    priced = per_million(hourly * answer.plan.layout.ranks, answer.throughput, busy) if hourly and fits else None
    return [
        Metric("used", "Memory used", "tiles", 100 * used / m.budget, "%", "model", digits=0,
               tone="" if fits else "wasted", how=_memory(answer)),
        Metric("room", "Room", "tiles", m.capacity if fits else None, "sequences", "model", tone="cached",
               how=_room(answer)),
        Metric("ttft", "TTFT", "tiles", answer.ttft if fits else None, _between(answer, "ttft", 1, "s"), "model",
               digits=_digits(answer.ttft), tone="prefill", how=_ttft(answer), note=_note(answer, "ttft")),
        Metric("tpot", "TPOT", "tiles", answer.tpot * 1e3 if fits else None, _between(answer, "tpot", 1e3, "ms"),
               "model", digits=1, tone="decode", how=_tpot(answer), note=_note(answer, "tpot")),
        Metric("throughput", "Output of all", "tiles", answer.throughput if fits else None, "tokens/s", "model",
               how=_throughput(answer)),
        Metric("user", "Each client reads", "tiles", answer.per_user if fits else None, "tokens/s", "model", digits=0,
               how=_user(answer)),
        Metric("price", "Output tokens", "tiles", priced, "$ per 1M", "model", digits=2,
               how=_price(answer, hourly, terms, busy, priced)),
    ]  # fmt: skip


def _digits(x: float) -> int:
    return 2 if x < 10 else 1 if x < 100 else 0


def _between(answer: Answer, what: str, scale: float, unit: str) -> str:
    """The unit and the interval, as short as a tile is narrow."""
    if not answer.fits:
        return unit
    ends = [scale * x for x in answer.between(what)]
    low, high = (f"{x:,.{max(0, _digits(x) - (unit == 'ms'))}f}" for x in ends)
    return f"{unit}, {low}–{high}"


def _note(answer: Answer, what: str) -> str:
    found = engines.interval(what, answer.plan.shape.kind)
    return (
        f"Nine of ten of {found.n} measured runs of models that the fit had not seen were between {found.low:.2f} and "
        f"{found.high:.2f} times the prediction."
    )


def _gib(x: float) -> str:
    return f"{x / GIB:,.2f} GiB"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms"


def _memory(answer: Answer) -> How:
    m, device = answer.memory, answer.plan.device
    kv = m.kv if answer.fits else m.sequence
    return (
        ("weights + activations + runtime + KV ≤ 0.9 · memory",
         f"{_gib(m.weights + m.activations + m.runtime + kv)} of {_gib(m.budget)} on each GPU"),
        ("memory", f"{device.memory_gib:,.1f} GiB ({'driver' if device.driver else device.basis})"),
        ("weights", f"{_gib(m.weights)} on the fullest rank, {answer.plan.quant}"),
        ("activations", f"{_gib(m.activations)} of a step of 8,192 tokens"),
        ("runtime", f"{_gib(m.runtime)}: CUDA context, libraries, graphs"),
        ("KV", f"{answer.running:,} × {_gib(m.sequence)}" if answer.fits else f"one sequence: {_gib(m.sequence)}"),
    )  # fmt: skip


def _none(answer: Answer) -> How:
    return (("The plan does not fit", answer.memory.reason),)


def _room(answer: Answer) -> How:
    m = answer.memory
    if not answer.fits:
        return _none(answer)
    return (
        ("⌊(0.9 · memory − weights − activations − runtime) / sequence⌋ · copies", f"{m.capacity:,} sequences"),
        ("left for KV", _gib(m.budget - m.weights - m.activations - m.runtime)),
        ("sequence", f"{_gib(m.sequence)}: the prompt and half of the answer"),
        ("copies", f"{answer.plan.layout.dp * answer.plan.layout.pp}"),
    )


def _tpot(answer: Answer) -> How:
    if answer.work is None:
        return _none(answer)
    spent, w, made = answer.spent(), answer.work, answer.plan
    e = engines.family(made.engine, made.shape.kind)
    causes = " + ".join(f"{part} {_ms(seconds)}" for part, seconds in spent.items() if part != "prompt")
    return (
        ("TPOT = step + mix · (B − 1) · prompt / answer", _ms(answer.tpot)),
        ("step", f"{causes} = {_ms(answer.step)}"),
        ("weights", f"{_ms(w.weights + w.experts)} at {made.device.bandwidth:,.0f} GB/s if all are read; the engine "
         f"reaches {e.read:.0%}"),
        ("KV cache", f"{_ms(w.cache)} at the data sheet’s rate / {e.kv:.2f}"),
        ("launch", f"{e.step * 1e3:.2f} ms + {made.shape.layers} layers · {e.layer * 1e6:.0f} µs"),
        ("B", f"{w.batch:,.0f} sequences at once"),
        ("mix", f"{e.mix:.2f}: the share of others’ prompts that delays a token, fitted"),
        ("prompt", _ms(spent["prompt"])),
        ("answer", f"{made.output:,} tokens"),
    )  # fmt: skip


def _ttft(answer: Answer) -> How:
    if answer.work is None:
        return _none(answer)
    spent, w, made = answer.spent(), answer.work, answer.plan
    e = engines.family(made.engine, made.shape.kind)
    return (
        ("TTFT = first + step + lead · prompt · (1 + wave · (B − 1)) + queue", _ms(answer.ttft)),
        ("first", f"{_ms(e.first)}: what the engine adds, fitted"),
        ("step", _ms(answer.step)),
        ("lead, wave", f"{e.lead:.2f}, {e.wave:.3f}: fitted"),
        ("prompt", f"{_ms(spent['prompt'])} for {made.prompt:,} tokens"),
        ("B", f"{w.batch:,.0f} sequences at once"),
        ("queue", f"(clients / B − 1) · answer · TPOT = {_ms(w.waiting * w.output * answer.tpot)}"),
    )


def _throughput(answer: Answer) -> How:
    if not answer.fits:
        return _none(answer)
    made = answer.plan
    return (
        ("clients · answer / (TTFT + (answer − 1) · TPOT), Little’s law", f"{answer.throughput:,.0f} tokens/s"),
        ("clients", f"{made.clients:,}"),
        ("answer", f"{made.output:,} tokens"),
        ("TTFT + (answer − 1) · TPOT", f"{answer.latency:,.2f} s"),
        ("nine of ten", "{:,.0f} to {:,.0f} tokens/s".format(*answer.between("throughput"))),
    )


def _user(answer: Answer) -> How:
    if not answer.fits:
        return _none(answer)
    low, high = (1 / x for x in answer.between("tpot"))
    return (
        ("1 / TPOT", f"{answer.per_user:,.1f} tokens/s"), ("nine of ten", f"{high:,.0f} to {low:,.0f} tokens/s"),
    )  # fmt: skip


def _price(answer: Answer, hourly: float | None, terms: str, busy: float, priced: float | None) -> How:
    if priced is None:
        return (("no price", "no rent is listed for this device"),) if answer.fits else _none(answer)
    low, high = answer.between("throughput")
    return (
        ("10⁶ · GPUs · $ per hour / (3,600 · tokens/s · busy)", f"${priced:,.2f}"),
        ("GPUs", f"{answer.plan.layout.ranks}"),
        ("$ per hour", f"{hourly:,.2f}, median of the listed prices, {terms}"),
        ("tokens/s", f"{answer.throughput:,.0f}"),
        ("busy", f"{busy:.0%}"),
        ("nine of ten", f"${priced * answer.throughput / high:,.2f} to {priced * answer.throughput / low:,.2f}"),
    )
