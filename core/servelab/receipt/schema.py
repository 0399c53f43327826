"""What a receipt is: who measured what, with which command at which commit, the numbers, and what they do not say.

Four kinds of evidence, each with its own duty:

    derived    recomputed from the core alone
    replayed   the core over outside data: names the data by sha256 and keeps a compact sufficient statistic
    measured   on a named machine: keeps the raw samples, from which every summary is recomputed at load
    model      a projection: keeps its assumptions

The same rules as JSON Schema (Draft 2020-12): receipts/schema/receipt-1.json. A tolerance is one closed interval per
metric, `{"shared_blocks": {"min": 204, "max": 204}}`: the claim breaks when the value leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast

from servelab.receipt import reader as r
from servelab.receipt.numbers import Number, same
from servelab.receipt.samples import STATISTICS, split

SCHEMA = "urn:servelab:receipt:1"

PUBLISHED = "6e7b1e76eb7d6381c81b2c304f31b3fde6135adb910046bbe86230addb4b7918"
"""sha256 of schema/receipt-1.json, the same rules as JSON Schema; a change here is a change there."""

Evidence = Literal["derived", "replayed", "measured", "model"]

EVIDENCE: tuple[Evidence, ...] = ("derived", "replayed", "measured", "model")

DUTY = {"derived": (), "replayed": ("statistic",), "measured": ("samples",), "model": ("assumptions",)}
"""Keys that a receipt must have beyond the common ones, by evidence."""

MAY = {"derived": ("statistic",), "replayed": (), "measured": ("statistic",), "model": ("statistic",)}
"""Keys that it may have besides."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number: `unit` as printed after it, `n` observations behind it, `ci95` = (low, high) in the same unit or
    None."""

    value: Number
    unit: str
    n: int
    ci95: tuple[Number, Number] | None = None


@dataclass(frozen=True, slots=True)
class Data:
    """An outside file: its name, and the sha256 of its bytes as they lie on the disk (compressed if it is)."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Interval:
    """Closed interval that a metric must stay in for its claim to hold; `min` = `max` pins a count."""

    min: Number
    max: Number


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt in memory; `to_json()` gives the object that the file holds.

    `claims`: ids "<kind>.<metric>" that prose may quote. `seed`: None where nothing is random. `environment`: facts
    about the machine and the libraries, never host names or paths. `path` (relative to the receipts folder) and
    `sha256` (of the file's bytes) come from the file and are no part of the object.
    """

    system: str
    kind: str
    evidence: Evidence
    claims: tuple[str, ...]
    command: str
    seed: int | None
    commit: str
    date: str
    environment: Mapping[str, str]
    workload: Mapping[str, Any]
    data: tuple[Data, ...]
    metrics: Mapping[str, Metric]
    losses: tuple[str, ...]
    tolerance: Mapping[str, Interval]
    statistic: Mapping[str, Any] | None = None
    samples: Mapping[str, tuple[Number, ...]] | None = None
    assumptions: tuple[str, ...] | None = None
    schema: str = SCHEMA
    path: str = field(default="", compare=False)
    sha256: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; `read(receipt.to_json()) == receipt`."""
        optional = ("statistic", "samples", "assumptions")
        names = [f.name for f in fields(self) if f.name not in ("path", "sha256")]
        return {n: _plain(getattr(self, n)) for n in names if n not in optional or getattr(self, n) is not None}


COMMON = tuple(
    f.name for f in fields(Receipt) if f.name not in ("statistic", "samples", "assumptions", "path", "sha256")
)


def read(value: Any, *, path: str = "", sha256: str = "") -> Receipt:
    """A Receipt from the parsed JSON of one. ValueError names the field, its value and what is allowed there."""
    raw = r.mapping(value, "receipt")
    evidence = r.one_of(raw.get("evidence"), "evidence", EVIDENCE)
    r.keys(raw, "receipt", required=COMMON + DUTY[evidence], optional=MAY[evidence], why=f" of a {evidence} receipt")
    r.one_of(raw["schema"], "schema", (SCHEMA,))
    kind = r.match(raw["kind"], "kind", r.NAME)
    metrics = {k: _metric(v, f"metrics.{k}") for k, v in r.table(raw["metrics"], "metrics", r.NAME).items()}
    samples = raw.get("samples")
    receipt = Receipt(
        system=r.text(raw["system"], "system"),
        kind=kind,
        evidence=cast(Evidence, evidence),
        claims=tuple(_claim(v, f"claims[{i}]", kind, metrics) for i, v in enumerate(r.array(raw["claims"], "claims"))),
        command=r.text(raw["command"], "command"),
        seed=None if raw["seed"] is None else r.integer(raw["seed"], "seed"),
        commit=r.match(raw["commit"], "commit", r.COMMIT),
        date=r.date(raw["date"], "date"),
        environment={
            k: r.text(v, f"environment.{k}") for k, v in r.table(raw["environment"], "environment", r.NAME).items()
        },
        workload=r.json_object(raw["workload"], "workload"),
        data=tuple(_data(v, f"data[{i}]") for i, v in enumerate(r.array(raw["data"], "data"))),
        metrics=metrics,
        losses=r.sentences(raw["losses"], "losses"),
        tolerance={
            k: _interval(v, f"tolerance.{k}")
            for k, v in r.table(raw["tolerance"], "tolerance", r.NAME, empty=True).items()
        },
        statistic=r.json_object(raw["statistic"], "statistic") if "statistic" in raw else None,
        samples=None
        if samples is None
        else {k: _series(v, f"samples.{k}") for k, v in r.table(samples, "samples", r.NAME).items()},
        assumptions=r.sentences(raw["assumptions"], "assumptions", least=1) if "assumptions" in raw else None,
        path=path,
        sha256=sha256,
    )
    _check(receipt)
    return receipt


def _check(receipt: Receipt) -> None:
    """Rules that join two fields."""
    if receipt.evidence == "derived" and receipt.data:
        raise ValueError(
            f"data: {receipt.data[0].name!r} is not allowed; a derived receipt needs no outside data, use replayed"
        )
    if receipt.evidence == "replayed" and not receipt.data:
        raise ValueError("data: [] is not allowed; a replayed receipt names at least one file with its sha256")
    if receipt.evidence == "measured" and "machine" not in receipt.environment:
        raise ValueError("environment.machine is missing; a measured receipt names the CPU or GPU it was measured on")
    for name in receipt.tolerance:
        if name not in receipt.metrics:
            raise ValueError(f"tolerance.{name}: no such metric; use one of {', '.join(receipt.metrics)}")
    if receipt.samples is not None:
        for name, metric in receipt.metrics.items():
            _check_summary(name, metric, receipt.samples)


def _check_summary(name: str, metric: Metric, samples: Mapping[str, tuple[Number, ...]]) -> None:
    sample, statistic = split(name)
    if sample not in samples:
        raise ValueError(f"metrics.{name}: there are no samples {sample!r}; use one of {', '.join(samples)}")
    again = STATISTICS[statistic](samples[sample])
    if not same(metric.value, again):
        raise ValueError(
            f"metrics.{name}.value: {metric.value} is not the {statistic} of its samples, which is {again}; regenerate"
        )
    if metric.n != len(samples[sample]):
        raise ValueError(
            f"metrics.{name}.n: {metric.n} is not its number of samples, which is {len(samples[sample])}; regenerate"
        )


def _metric(value: Any, path: str) -> Metric:
    raw = r.mapping(value, path)
    r.keys(raw, path, required=("value", "unit", "n", "ci95"))
    number = r.number(raw["value"], f"{path}.value")
    ci95 = None if raw["ci95"] is None else _pair(raw["ci95"], f"{path}.ci95")
    if ci95 is not None and not ci95[0] <= number <= ci95[1]:
        raise ValueError(
            f"{path}.ci95: {list(ci95)} does not hold the value {number}; use [low, high] around it or null"
        )
    return Metric(
        number, r.text(raw["unit"], f"{path}.unit", empty=True), r.integer(raw["n"], f"{path}.n", least=1), ci95
    )


def _pair(value: Any, path: str) -> tuple[Number, Number]:
    items = r.array(value, path)
    if len(items) != 2:
        raise ValueError(f"{path}: {len(items)} numbers are not allowed; use [low, high] or null")
    return r.number(items[0], f"{path}[0]"), r.number(items[1], f"{path}[1]")


def _data(value: Any, path: str) -> Data:
    raw = r.mapping(value, path)
    r.keys(raw, path, required=("name", "sha256"))
    return Data(r.match(raw["name"], f"{path}.name", r.FILE), r.match(raw["sha256"], f"{path}.sha256", r.SHA256))


def _interval(value: Any, path: str) -> Interval:
    raw = r.mapping(value, path)
    r.keys(raw, path, required=("min", "max"))
    low, high = r.number(raw["min"], f"{path}.min"), r.number(raw["max"], f"{path}.max")
    if low > high:
        raise ValueError(f"{path}: min {low} is above max {high}; swap them")
    return Interval(low, high)


def _series(value: Any, path: str) -> tuple[Number, ...]:
    items = r.array(value, path)
    if not items:
        raise ValueError(f"{path}: [] is not allowed; keep at least one raw sample")
    return tuple(r.number(x, f"{path}[{i}]") for i, x in enumerate(items))


def _claim(value: Any, path: str, kind: str, metrics: Mapping[str, Metric]) -> str:
    claim = r.text(value, path)
    if claim.removeprefix(f"{kind}.") not in metrics:
        raise ValueError(
            f"{path}: {claim!r} is no metric of this receipt; use {kind}.<metric> with one of {', '.join(metrics)}"
        )
    return claim


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return value
