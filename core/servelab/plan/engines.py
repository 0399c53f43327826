"""Engines: the coefficients of servelab.plan.speed as fitted to measured runs (data/engines.json).

A family is an engine and a kind of model; generate/plan_fit.py fitted its coefficients to the workloads that the file
names as fitted. A deployment that was measured at some workload has factors of its own on some of them: that is a
calibration, as anybody can do with a few runs. Intervals are quantiles of measured/predicted on runs that no fit has
seen: other workloads of calibrated deployments, other models for the families.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from servelab.kv.limits import entry
from servelab.plan.speed import Engine

NAMES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}


@dataclass(frozen=True, slots=True)
class Interval:
    """Quantiles 0.05 and 0.95 of measured/predicted, and how many runs they are from."""

    low: float
    high: float
    n: int

    def of(self, predicted: float) -> tuple[float, float]:
        return predicted * self.low, predicted * self.high


@lru_cache(maxsize=1)
def fitted() -> Mapping[str, Any]:
    """The file: families, deployments, fitted and held-out workloads, intervals."""
    found: Mapping[str, Any] = json.loads((files("servelab.plan") / "data" / "engines.json").read_text())
    return found


@lru_cache(maxsize=16)
def family(name: str, kind: str) -> Engine:
    """An engine's coefficients for a kind of model (Shape.kind), another engine's where its own were never measured.

    ValueError for an unknown engine.
    """
    entry("engine", name, NAMES)
    table = fitted()["families"]
    return Engine(**next(table[key] for other in (name, *NAMES) if (key := f"{other}, {kind}") in table))


def calibrated(engine: Engine, deployment: str) -> Engine:
    """The engine with a deployment's own factors, where it was measured."""
    factors: Mapping[str, float] = fitted()["deployments"].get(deployment, {})
    return replace(engine, **{name: getattr(engine, name) * factor for name, factor in factors.items()})


@lru_cache(maxsize=16)
def interval(what: str, kind: str, calibrated: bool = False) -> Interval:
    """The interval of "ttft", "tpot" or "latency"."""
    return Interval(**fitted()["intervals"]["calibrated" if calibrated else "families"][kind][what])
