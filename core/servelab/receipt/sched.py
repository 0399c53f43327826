"""The scheduling room's receipts: from experiments to named metrics, for the generators and for whoever recomputes.

sched_admission  derived    a fixed window and a token bucket before one server, many seeds; GCRA against the bucket
sched_routing    derived    what prefix caches save behind routers, simulated and in closed form
sched_chunk      derived    TTFT and the decodes' longest gap over the prefill chunk
sched_cplan      replayed   static and continuous batching in a comparison's own accounting and corrected
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from statistics import median
from typing import Any

from servelab.receipt.result import Files, Result
from servelab.receipt.schema import Metric, Receipt
from servelab.sched import cplan
from servelab.sched.admission import Limit, gcra, token_bucket
from servelab.sched.experiments import Flood, Prefixes, chunk_sweep, gatekeeper, routed
from servelab.sched.request import PS
from servelab.sched.routing import saved

GATES = ("fixed_window", "token_bucket")
ROUTES = {"affinity": None, "round_robin": None, "random": 1}
"""Routers with a closed form, and the seed that shuffles their requests."""


def flood(workload: Mapping[str, Any]) -> Flood:
    """The experiment that a workload describes; fractions are texts."""
    w = workload
    limit = Limit(Fraction(w["rate_limit_per_s"]), w["burst"], w["window_count"], Fraction(w["window_s"]))
    return Flood(w["requests"], float(w["arrivals_per_s"]), Fraction(w["service_s"]), limit)


def admission_result(workload: Mapping[str, Any]) -> Result:
    """sched_admission without its exhaustive part."""
    seeds = workload["seeds"]
    one = flood(workload)
    metrics: dict[str, Metric] = {}
    for name, passed in gatekeeper(one, GATES, range(seeds)).items():
        counts = passed.admitted
        metrics |= {
            f"{name}_admitted_median": Metric(median(counts), "requests", seeds),
            f"{name}_admitted_least": Metric(min(counts), "requests", seeds),
            f"{name}_admitted_most": Metric(max(counts), "requests", seeds),
            f"{name}_admitted_90_percent": Metric(100 * counts.count(90) / seeds, "%", seeds),
            f"{name}_refused_percent": Metric(100 - 100 * sum(counts) / (seeds * one.requests), "%", seeds),
            f"{name}_p95_s": Metric(median(passed.p95), "s", seeds),
        }
    return Result(metrics)


def gcra_differences(workload: Mapping[str, Any]) -> Metric:
    """Decisions in which GCRA and the token bucket differ, over `gcra_events` Poisson arrivals at 1.2 times the rate;
    one in ten steps the clock back."""
    limit, rng = flood(workload).limit, Random(0)
    bucket, rate = token_bucket(limit), gcra(limit)
    now = differ = 0
    for _ in range(workload["gcra_events"]):
        now += round(rng.expovariate(1.2 * float(limit.rate)) * PS)
        t = now - rng.randrange(PS) if rng.random() < 0.1 else now
        differ += bucket(t, 0) != rate(t, 0)
    return Metric(differ, "decisions", workload["gcra_events"])


def recompute_admission(receipt: Receipt, files: Files) -> Result:
    """All but the ten million decisions."""
    done = admission_result(receipt.workload)
    why = f"{receipt.workload['gcra_events']:,} decisions take longer than a click: run generate/sched_admission.py"
    return Result(done.metrics, missing={"gcra_differences": why})


def routing_result(workload: Mapping[str, Any]) -> Result:
    """sched_routing: by router and replicas, simulated and by formula."""
    w = workload
    prefixes = Prefixes(tuple(w["requests_per_prefix"]) * w["repeat"], w["shared_blocks"], w["blocks"])
    n = sum(prefixes.counts)
    f, mean = prefixes.shared / prefixes.blocks, n / len(prefixes.counts)
    metrics = {}
    for router, seed in ROUTES.items():
        for replicas in w["replicas"]:
            name = f"{router}_{replicas}_saved"
            metrics[f"{name}_percent"] = Metric(100 * routed(prefixes, router, replicas, seed), "%", n)
            metrics[f"{name}_formula_percent"] = Metric(100 * saved(f, mean, replicas, router), "%", n)
    return Result(metrics)


def recompute_routing(receipt: Receipt, files: Files) -> Result:
    """The whole receipt."""
    return routing_result(receipt.workload)


def chunk_result(workload: Mapping[str, Any]) -> Result:
    """sched_chunk: by chunk size; `best` is the size with the least sum, `best_formula` √(a·L/b)."""
    w = workload
    a, b, length = w["overhead_ps"], w["token_ps"], w["prompt_tokens"]
    found = chunk_sweep(w["chunks"], w["prompts"], length, w["decodes"], a, b)
    metrics = {}
    for chunk, row in found.items():
        metrics[f"c{chunk}_ttft_p95_ms"] = Metric(row.ttft_p95, "ms", w["prompts"])
        metrics[f"c{chunk}_stall_ms"] = Metric(row.stall, "ms", w["prompts"])
    best = min(found, key=lambda chunk: found[chunk].both)
    metrics["best_chunk_tokens"] = Metric(best, "tokens", len(found))
    metrics["best_formula_tokens"] = Metric((a * length / b) ** 0.5, "tokens", 1)
    return Result(metrics)


def recompute_chunk(receipt: Receipt, files: Files) -> Result:
    """The whole receipt."""
    return chunk_result(receipt.workload)


def cplan_result(lists: Mapping[str, Sequence[Sequence[float]]]) -> Result:
    """sched_cplan from the request lists by rate; the statistic holds the sums of all waits for a first token."""
    statistic = {}
    for rate, rows in lists.items():
        requests = [(float(arrival), int(prompt), int(output)) for arrival, prompt, output in rows]
        statistic[rate] = {"requests": len(requests), **cplan.waits(requests)}
    return Result(cplan_metrics(statistic), statistic)


def cplan_metrics(statistic: Mapping[str, Any]) -> dict[str, Metric]:
    """Means and savings by rate; 1.5/s is r1_5."""
    metrics = {}
    for rate, row in statistic.items():
        name, n = f"r{rate.replace('.', '_')}", row["requests"]
        before = row["static_ms"]
        metrics[f"{name}_static_ms"] = Metric(before / n, "ms", n)
        for way in ("own", "corrected"):
            after = row[f"{way}_ms"]
            metrics[f"{name}_{way}_ms"] = Metric(after / n, "ms", n)
            metrics[f"{name}_{way}_saved_percent"] = Metric(100 * (1 - after / before), "%", n)
    return metrics


def recompute_cplan(receipt: Receipt, files: Files) -> Result:
    """From the committed sums; from the request lists where they are here."""
    if files:
        return cplan_result(json.loads(files[receipt.data[0].name])["by_rate_per_s"])
    return Result(cplan_metrics(receipt.statistic or {}))
