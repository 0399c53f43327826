"""Speed, money and search of plans against sums done by hand, theorems and brute force."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.plan import money, search
from servelab.plan.devices import device
from servelab.plan.devices import table as devices
from servelab.plan.formats import named
from servelab.plan.ledger import ledger
from servelab.plan.memory import Layout
from servelab.plan.models import model, table
from servelab.plan.plan import Plan, solve
from servelab.plan.spec import speculate, tokens
from servelab.plan.speed import Engine, latencies, parts, regime, work

H200 = device("H200")
IDEAL = Engine(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1)
"""Every rate of the data sheet, nothing added."""


def test_an_ideal_step_is_bytes_over_bandwidth_and_an_ideal_prompt_operations_over_rate() -> None:
    shape = model("Llama-3.1-8B")
    made = work(shape, H200, Layout(), named("bf16"), "bf16", 1000, 200, 4, 100)
    seconds = parts(made, IDEAL)
    embedding = 128_256 * 4096
    assert seconds["weights"] == pytest.approx(2 * (8_030_261_248 - embedding) / 4.8e12, rel=1e-4)
    assert seconds["KV cache"] == pytest.approx(4 * 1100 * 131_072 / 4.8e12)
    norms = 65 * 4096
    multiplied = 8_030_261_248 - 2 * embedding - norms
    assert seconds["arithmetic"] == pytest.approx(4 * 2 * (multiplied + embedding) / 989.4e12)
    assert made.prefill == pytest.approx(1000 * 2 * multiplied / 989.4e12)
    assert made.attend == pytest.approx(2 * 32 * 256 * 32 * 1000**2 / 2 / 989.4e12)


def test_decode_reads_only_the_experts_that_its_tokens_reach() -> None:
    """llmfit#474: the speed of a mixture was computed from all its parameters."""
    shape = model("Qwen3-30B-A3B")
    one, many = (
        parts(work(shape, H200, Layout(), named("bf16"), "bf16", 100, 100, n, 10**4), IDEAL)["weights"] * 4.8e12 / 2
        for n in (1, 1000)
    )
    assert one == pytest.approx(shape.active_params - shape.params["embedding"], rel=1e-3)
    assert many == pytest.approx(shape.total - shape.params["embedding"], rel=1e-3)


@given(st.sampled_from(sorted(table())), st.sampled_from(sorted(devices())), st.integers(1, 500), st.integers(1, 8192))
def test_total_throughput_never_falls_with_the_batch_under_the_roofline(
    name: str, card: str, batch: int, context: int
) -> None:
    """t(B) = W + B·k + … + o: what is read once is shared, so B / t(B) rises. A published planner had it fall."""
    for engine in (IDEAL, Engine()):
        rates = []
        for n in (batch, batch + 1, 2 * batch):
            made = work(model(name), devices()[card], Layout(), named("bf16"), "bf16", context, 64, n, 10**6)
            rates.append(n / sum(parts(made, engine).values()))
        assert rates[0] <= rates[1] * (1 + 1e-12) and rates[1] <= rates[2] * (1 + 1e-12)


@given(
    st.sampled_from(["Llama-3.1-8B", "Qwen3-30B-A3B", "DeepSeek-V2-Lite", "gemma-3-12b-it", "Qwen3.5-27B"]),
    st.integers(1, 20_000), st.integers(1, 20_000), st.integers(1, 64),
)  # fmt: skip
def test_times_grow_with_context_and_batch(name: str, a: int, b: int, clients: int) -> None:
    low, high = sorted((a, b))
    plan = Plan(model(name), device("B300 SXM"), prompt=low, clients=clients)
    less, more, wider = solve(plan), solve(replace(plan, prompt=high)), solve(replace(plan, clients=clients + 1))
    assert less.fits and (less.ttft, less.tpot) <= (more.ttft, more.tpot)
    assert less.tpot <= more.tpot * (1 + 1e-12) and less.ttft <= more.ttft * (1 + 1e-12)
    assert less.tpot <= wider.tpot * (1 + 1e-12)


def test_fewer_bits_are_read_faster_and_cards_of_equal_kind_order_by_bandwidth() -> None:
    plan = Plan(model("Llama-3.1-8B"), H200, clients=1)
    times = [solve(replace(plan, quant=quant)).tpot for quant in ("bf16", "fp8", "int4")]
    assert times == sorted(times, reverse=True)
    assert solve(plan).tpot < solve(replace(plan, device=device("H100 SXM"))).tpot


def test_a_full_cache_is_a_queue() -> None:
    """Clients beyond the cache wait, by Little's law; they do not make the plan impossible, nor it any faster."""
    plan = Plan(model("Llama-3.1-70B"), H200, quant="fp8", prompt=8192, output=1024)
    room = solve(plan).memory.capacity
    at, over = solve(replace(plan, clients=room)), solve(replace(plan, clients=4 * room))
    assert over.fits and over.tpot == pytest.approx(at.tpot) and over.ttft > at.ttft + 2 * 1024 * at.tpot
    assert over.throughput == pytest.approx(at.throughput, rel=0.05)


def test_the_regime_is_what_most_time_goes_to() -> None:
    one = work(model("Llama-3.1-8B"), H200, Layout(), named("bf16"), "bf16", 100, 100, 1, 10)
    assert regime(one, IDEAL) == "bandwidth" and regime(one, replace(IDEAL, step=1.0)) == "launch"
    wide = work(model("Llama-3.1-8B"), H200, Layout(), named("bf16"), "bf16", 10, 10, 2000, 10**5)
    assert regime(wide, IDEAL) == "compute"


def test_other_clients_prompts_delay_decodes() -> None:
    made = work(model("Llama-3.1-8B"), H200, Layout(), named("bf16"), "bf16", 1000, 100, 5, 100)
    ttft, tpot = latencies(made, replace(IDEAL, wave=0.5))
    step, prompt = sum(parts(made, IDEAL).values()), made.prefill + made.attend
    assert tpot == pytest.approx(step + 4 * prompt / 100) and ttft == pytest.approx(step + prompt * 3)


def test_rent_own_and_apis() -> None:
    assert money.per_million(3.6, 1000) == pytest.approx(1) and money.per_million(3.6, 1000, 0.5) == pytest.approx(2)
    own = money.Own(26_298, 3, 0.10, 1.5)
    assert own.hourly(1000) == pytest.approx(1.0 + 0.15)
    assert money.break_even(2.15, own, 1000) == pytest.approx(0.5) and money.break_even(0.5, own, 1000) is None
    assert money.api_price(money.Api("x", "y", 1.0, 4.0), 3000, 1000) == 7.0
    assert money.rent("H200 SXM") and money.rent("H200 SXM", "spot") and money.rent("Apple M1") is None
    assert all(row.date and row.source for row in money.rents())
    for call, told in (
        (lambda: money.Own(capital=-1), "capital=-1"),
        (lambda: money.Own(years=0), "years=0"),
        (lambda: money.per_million(-2.0, 10), "hourly=-2.0"),
        (lambda: money.per_million(2.0, 10, 0), "utilisation=0"),
        (lambda: money.rent("H200 SXM", "stolen"), "terms='stolen'"),
    ):
        with pytest.raises(ValueError, match=told):
            call()


def test_search_finds_what_brute_force_finds_and_the_front_is_undominated() -> None:
    plan, slo = Plan(model("Llama-3.1-70B"), H200), search.Slo(2.0, 0.05)
    cards = [device(name) for name in ("H100 SXM", "H200 SXM", "A100 SXM 80GB", "L40S", "Apple M1")]
    found = search.search(plan, cards, ("bf16", "fp8"), slo)
    every = [
        (dollars, answer)
        for card in cards for quant in ("bf16", "fp8") for n in search.SPREADS for batch in search.BATCHES
        if slo.met(answer := solve(replace(plan, device=card, quant=quant, layout=Layout(n), clients=batch)))
        and (dollars := search.cost(answer)) is not None
    ]  # fmt: skip
    assert found[0][0] == min(dollars for dollars, _ in every)
    assert [dollars for dollars, _ in found] == sorted(dollars for dollars, _ in found)
    answers = [answer for _, answer in every]
    front = search.pareto(answers)
    beaten = [
        a for a in front if any(b.per_user >= a.per_user and b.per_device > a.per_device for b in answers)
    ]
    assert front and not beaten
    assert all(any(f.per_user >= a.per_user and f.per_device >= a.per_device for f in front) for a in answers)


def test_the_smallest_that_fits_is_chosen() -> None:
    plan = Plan(model("Llama-3.1-70B"), device("H100 SXM"), prompt=32_768, output=1024)
    assert search.smallest(plan).plan.layout == Layout(4)
    assert search.smallest(replace(plan, quant="fp8")).plan.layout == Layout(2)
    assert not search.smallest(replace(plan, device=device("T4"))).fits


def test_the_smallest_is_the_first_that_fits_on_every_device() -> None:
    for name in ("Llama-3.1-8B", "Llama-3.1-70B", "Qwen2.5-7B", "gpt-oss-120b"):
        for card in devices().values():
            plan = Plan(model(name), card)
            tried = [solve(replace(plan, layout=layout)) for layout in search.layouts(plan.shape)]
            first = next((answer for answer in tried if answer.fits), tried[-1])
            assert search.smallest(plan).plan.layout == first.plan.layout, (name, card.name)


def test_speculation_breaks_even_where_it_says() -> None:
    assert tokens(0.5, 1) == 1.5 and tokens(1, 4) == 5 and tokens(0, 4) == 1
    plan = Plan(model("Llama-3.1-70B"), H200, quant="fp8", clients=1)
    found = speculate(plan, model("Llama-3.2-1B"), 4, 0.7)
    assert found.break_even is not None and 0 < found.break_even < 0.7 < 1 < found.speedup
    assert speculate(plan, model("Llama-3.2-1B"), 4, found.break_even).speedup == pytest.approx(1)
    slow = replace(plan, device=device("B300 SXM"))
    assert speculate(slow, model("Llama-3.1-70B"), 8, 0.99).break_even is None  # a draft as large as the model
    for accept, guesses, told in ((1.5, 4, "accept=1.5"), (0.5, 0, "guesses=0")):
        with pytest.raises(ValueError, match=told):
            speculate(plan, model("Llama-3.2-1B"), guesses, accept)


def test_the_norm_ledger_of_llama_3_8b() -> None:
    """Six vectors become four, 1 MiB a token; of a decode step's bytes that is 0.0065 %."""
    found = ledger(model("Llama-3.1-8B"))
    assert (found.saved, found.sites, found.vector) == (2**20, 64, 8192)
    assert round(100 * found.saved_share, 1) == 33.3 and round(100 * found.share, 4) == 0.0065
