"""Fit the engines of servelab.plan to measured runs: `python generate/plan_fit.py`, which writes data/engines.json.

Reads e2e/silicon_sample.csv.gz in SERVELAB_DATA. Every second workload of the H200's, in sorted order, is held out of
all fits.
Families (an engine and a kind of model) and deployments are fitted in turn: a family's coefficients around ENGINE, each
within about the spread that PRIOR gives (standard deviation of its logarithm), then each deployment's factors on some
of them around 1. Residuals are logarithms of predicted/measured, TPOT ± 3 % and TTFT ± 12 %, with soft-L1 loss.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from servelab.plan.plan import solve
from servelab.plan.rows import Row, read, workloads
from servelab.plan.speed import NAMES, Engine, Work, latencies

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SERVELAB_DATA") or ROOT / "../shared/data")
SOURCE = "e2e/silicon_sample.csv.gz"
OUT = ROOT / "core/servelab/plan/data/engines.json"

PRIOR = {
    "read": 0.1, "kv": 0.4, "multiply": 0.5, "prefill": 0.25, "attend": 0.4, "link": 0.4, "collective": 0.5,
    "step": 0.5, "layer": 0.7, "routed": 0.7, "spread": 0.4, "mix": 0.4, "first": 1.0, "wave": 0.7, "lead": 0.2,
}  # fmt: skip
OWN = {
    "read": 0.1, "kv": 0.1, "prefill": 0.15, "collective": 0.3, "layer": 0.3, "mix": 0.2, "first": 0.5, "wave": 0.5,
    "lead": 0.3,
}  # fmt: skip
TPOT, TTFT = 0.03, 0.12
ROUNDS = 8


def stacked(works: Sequence[Work]) -> Work:
    """Many plans as one Work of arrays."""
    return Work(**{f.name: np.array([getattr(w, f.name) for w in works], float) for f in fields(Work)})


def residuals(made: Work, engine: Engine, ttft: np.ndarray, tpot: np.ndarray) -> np.ndarray:
    predicted = latencies(made, engine)
    return np.concatenate([np.log(predicted[1] / tpot) / TPOT, np.log(predicted[0] / ttft) / TTFT])


def minimise(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, steps: int = 15) -> np.ndarray:
    """Levenberg and Marquardt on soft-L1 of f(x) and on x itself, which is in units of its prior."""

    def loss(x: np.ndarray) -> float:
        return float(np.sum(2 * (np.sqrt(1 + f(x) ** 2) - 1)) + x @ x)

    damping, best = 1e-2, loss(x)
    for _ in range(steps):
        r = f(x)
        weight = (1 + r**2) ** -0.25
        jacobian = np.stack([(f(x + 1e-5 * one) - r) / 1e-5 for one in np.eye(len(x))], axis=1) * weight[:, None]
        normal, gradient = jacobian.T @ jacobian + np.eye(len(x)), jacobian.T @ (r * weight) + x
        for _ in range(8):
            tried = x - np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            if (found := loss(tried)) < best:
                x, best, damping = tried, found, damping / 5
                break
            damping *= 5
        else:
            break
    return x


def scaled(base: Engine, deviations: dict[str, np.ndarray | float]) -> Engine:
    """The engine with the coefficients times e^deviation."""
    return Engine(**{name: getattr(base, name) * np.exp(deviations.get(name, 0.0)) for name in NAMES})


class Family:
    """The rows of one family, as arrays, and the deviations of its deployments."""

    def __init__(self, rows: list[Row], works: list[Work]) -> None:
        self.work, self.names = stacked(works), sorted({row.deployment for row in rows})
        self.ttft, self.tpot = (np.array([getattr(row, what) for row in rows]) for what in ("ttft", "tpot"))
        self.index = np.array([self.names.index(row.deployment) for row in rows])
        self.own = np.zeros((len(self.names), len(OWN)))
        self.x = np.zeros(len(PRIOR))

    def engine(self, x: np.ndarray) -> Engine:
        return scaled(Engine(), dict(zip(PRIOR, x * np.array(list(PRIOR.values())), strict=True)))

    def deviations(self, own: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(OWN, (own * np.array(list(OWN.values()))).T, strict=True))

    def fit(self) -> None:
        for _ in range(ROUNDS):
            own = self.deviations(self.own[self.index])
            self.x = minimise(
                lambda x, own=own: residuals(self.work, scaled(self.engine(x), own), self.ttft, self.tpot), self.x
            )
            base = self.engine(self.x)
            for i in range(len(self.names)):
                mine = self.index == i
                part = Work(**{f.name: getattr(self.work, f.name)[mine] for f in fields(Work)})
                self.own[i] = minimise(
                    lambda own, base=base, part=part, mine=mine: residuals(
                        part, scaled(base, self.deviations(own)), self.ttft[mine], self.tpot[mine]
                    ),
                    self.own[i],
                )  # fmt: skip


def fit(rows: Sequence[Row]) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Families' coefficients and deployments' factors from these rows, whole replicas only."""
    groups: dict[str, tuple[list[Row], list[Work]]] = {}
    for row in rows:
        made = solve(row.plan()).work if row.prefill is None else None
        if made is not None:
            pair = groups.setdefault(row.family, ([], []))
            pair[0].append(row)
            pair[1].append(made)
    families, deployments = {}, {}
    for name, (chosen, works) in sorted(groups.items()):
        family = Family(chosen, works)
        family.fit()
        base = family.engine(family.x)
        families[name] = {key: float(f"{float(getattr(base, key)):.6g}") for key in NAMES}
        for deployment, own in zip(family.names, family.own, strict=True):
            factors = {key: float(f"{float(np.exp(d)):.5g}") for key, d in family.deviations(own).items()}
            deployments[deployment] = factors
    return families, deployments


def ratio(row: Row, engine: Engine) -> dict[str, float] | None:
    """measured/predicted of TTFT, TPOT and the whole answer's time; None of a row that has no prediction."""
    found = solve(row.plan(), engine)
    if not found.fits:
        return None
    whole = row.ttft + (row.output - 1) * row.tpot
    return {"ttft": row.ttft / found.ttft, "tpot": row.tpot / found.tpot, "latency": whole / found.latency}


def interval(values: list[float]) -> dict[str, float]:
    low, high = np.quantile(values, (0.05, 0.95))
    return {"low": round(float(low), 4), "high": round(float(high), 4), "n": len(values)}


def intervals(seen: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        kind: {what: interval([one[what] for one in ratios]) for what in ratios[0]}
        for kind, ratios in sorted(seen.items())
    }


def calibrated_ratios(rows: list[Row], families: dict, deployments: dict) -> dict[str, list[dict[str, float]]]:
    """Of held-out rows whose deployment was fitted at another workload."""
    out: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        if row.deployment in deployments:
            own = {name: np.log(f) for name, f in deployments[row.deployment].items()}
            if found := ratio(row, scaled(Engine(**families[row.family]), own)):
                out.setdefault(row.shape.kind, []).append(found)
    return out


def other_models(rows: list[Row]) -> dict[str, list[dict[str, float]]]:
    """Each model's rows with families fitted to the other models: what a new model can expect."""
    out: dict[str, list[dict[str, float]]] = {}
    for model in sorted({row.model for row in rows}):
        families, _ = fit([row for row in rows if row.model != model])
        for row in rows:
            known = row.model == model and row.family in families
            if known and (found := ratio(row, Engine(**families[row.family]))):
                out.setdefault(row.shape.kind, []).append(found)
    return out


def main() -> None:
    rows = [row for row in read((DATA / SOURCE).read_bytes()) if row.prefill is None]
    held = workloads(row for row in rows if row.device.name == "H200 SXM")[1::2]
    seen, unseen = [r for r in rows if r.workload not in held], [r for r in rows if r.workload in held]
    families, deployments = fit(seen)
    found = {
        "about": "Fitted by generate/plan_fit.py; shares of a data sheet's rates, seconds, and factors on them.",
        "source": f"{SOURCE}: ai-dynamo/aiconfigurator@095f58a (Apache-2.0), measured runs",
        "date": "2026-12-02", "fitted": [list(w) for w in workloads(seen)], "held_out": [list(w) for w in held],
        "families": families, "deployments": deployments,
        "intervals": {
            "calibrated": intervals(calibrated_ratios(unseen, families, deployments)),
            "families": intervals(other_models(rows)),
        },
    }  # fmt: skip
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{OUT.name}: {len(families)} families, {len(deployments)} deployments, {len(held)} workloads held out")


if __name__ == "__main__":
    main()
