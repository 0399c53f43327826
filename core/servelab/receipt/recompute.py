"""Do it again: every number of a receipt beside the number that this machine gets, now.

    derived    RECOMPUTE[kind] runs the core; the statistic is recomputed too
    replayed   the metrics from the committed statistic; with the data's own bytes, the statistic from the data as well
    measured   the summaries from the raw samples
    model      cannot be: its assumptions are all there is to check

Runs in CPython and in a browser tab alike. Reals agree to 12 significant digits, counts and statistics exactly.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servelab.receipt import kv, sched, validation
from servelab.receipt.canonical import sha256
from servelab.receipt.numbers import same
from servelab.receipt.result import Files, Result
from servelab.receipt.samples import STATISTICS, split
from servelab.receipt.schema import Metric, Receipt


def _late(module: str, name: str) -> Callable[[Receipt, Files], Result]:
    """A function of a room that is imported when it is needed: a page fetches it only then."""

    def call(receipt: Receipt, files: Files) -> Result:
        found: Result = getattr(importlib.import_module(f"servelab.receipt.{module}"), name)(receipt, files)
        return found

    return call


RECOMPUTE: dict[str, Callable[[Receipt, Files], Result]] = {
    "kv_pages": kv.recompute_pages,
    "kv_waste": kv.recompute_waste,
    "kv_prefix": kv.recompute_prefix,
    "sched_admission": sched.recompute_admission,
    "sched_routing": sched.recompute_routing,
    "sched_chunk": sched.recompute_chunk,
    "sched_cplan": sched.recompute_cplan,
    "sched_validation": validation.recompute_validation,
    "plan_kv": _late("plan", "recompute_kv"),
    "plan_speed": _late("plan", "recompute_speed"),
    "plan_roofline": _late("plan", "recompute_roofline"),
}
"""By receipt kind: the receipt and the outside files at hand (name → bytes, already known to be the right ones) →
Result."""


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. For a statistic, `committed` and `recomputed` are sha256 prefixes of its JSON, unit "sha256"."""

    metric: str
    unit: str
    committed: int | float | str
    recomputed: int | float | str
    same: bool

    @property
    def statistic(self) -> bool:
        """A part of the receipt's statistic, not one of its numbers."""
        return self.metric.startswith("statistic.")


@dataclass(frozen=True, slots=True)
class Recomputation:
    """`rows` that were recomputed; `missing`: metric → why it could not be; `absent`: the receipt's files that were not
    given, so that its statistic stands as committed; `note`: one sentence for all that."""

    rows: tuple[Row, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    note: str = ""


def recompute(receipt: Receipt, files: Sequence[bytes] = ()) -> Recomputation:
    """Recompute what can be, from the core, the committed statistic or samples, and the outside `files` given.

    ValueError when a file is none that the receipt names: it says which sha256 it has and which files are expected.
    """
    if receipt.evidence == "model":
        why = "a projection from the receipt's assumptions: there is no run to repeat"
        return Recomputation((), dict.fromkeys(receipt.metrics, why), note=f"Nothing recomputed: {why}.")
    if receipt.evidence == "measured":
        rows = tuple(_summary(receipt, name, metric) for name, metric in receipt.metrics.items())
        return Recomputation(
            rows, note="Summaries recomputed from the raw samples; the samples themselves need the named machine."
        )
    if receipt.kind not in RECOMPUTE:
        raise ValueError(
            f"{receipt.kind}: no function recomputes this kind; add one to RECOMPUTE, which has {', '.join(RECOMPUTE)}"
        )
    known = match(receipt, files)
    return _compare(receipt, RECOMPUTE[receipt.kind](receipt, known), known)


def match(receipt: Receipt, files: Sequence[bytes]) -> Files:
    """Name → bytes of the files that the receipt names, recognised by sha256. ValueError for any other file."""
    names = {d.sha256: d.name for d in receipt.data}
    out: dict[str, bytes] = {}
    for data in files:
        digest = sha256(data)
        if digest not in names:
            expected = " or ".join(f"{d.name} (sha256 {d.sha256[:16]}…)" for d in receipt.data) or "no file at all"
            raise ValueError(
                f"{receipt.kind}: this file has sha256 {digest[:16]}…; the receipt was made from {expected}"
            )
        out[names[digest]] = data
    return out


def _summary(receipt: Receipt, name: str, metric: Metric) -> Row:
    sample, statistic = split(name)
    again = STATISTICS[statistic]((receipt.samples or {})[sample])
    return Row(name, metric.unit, metric.value, again, same(metric.value, again))


def _compare(receipt: Receipt, result: Result, files: Files) -> Recomputation:
    names = [n for n in (*receipt.metrics, *result.metrics) if n not in result.missing]
    rows = [_metric(n, receipt.metrics.get(n), result.metrics.get(n)) for n in dict.fromkeys(names)]
    rows += [_statistic(receipt, key, value) for key, value in result.statistic.items()]
    absent = tuple(d.name for d in receipt.data if d.name not in files)
    return Recomputation(tuple(rows), result.missing, absent, _note(receipt, rows, absent, len(result.missing)))


def _metric(name: str, committed: Metric | None, again: Metric | None) -> Row:
    """A number on one side only, or with another unit or n, is not the same."""
    if committed is None or again is None:
        here = committed or again
        unit = here.unit if here else ""
        return Row(name, unit, committed.value if committed else "absent", again.value if again else "absent", False)
    if (committed.unit, committed.n) != (again.unit, again.n):
        told, heard = (f"{m.value} {m.unit}, n = {m.n}" for m in (committed, again))
        return Row(name, "", told, heard, False)
    return Row(name, committed.unit, committed.value, again.value, same(committed.value, again.value))


def _statistic(receipt: Receipt, key: str, again: Any) -> Row:
    committed, recomputed = _digest((receipt.statistic or {}).get(key)), _digest(again)
    return Row(f"statistic.{key}", "sha256", committed, recomputed, committed == recomputed)


def _digest(value: Any) -> str:
    plain = json.loads(json.dumps(value), parse_float=_number)  # as canonical JSON reads: 2.0 is written 2
    return sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())[:16]


def _number(text: str) -> float:
    x = float(text)
    return int(x) if x.is_integer() else x


def _note(receipt: Receipt, rows: Sequence[Row], absent: Sequence[str], missing: int) -> str:
    parts = sum(row.statistic for row in rows)
    told = f"{len(rows) - parts} numbers" + (f" and {'part of ' if absent else ''}the statistic" if parts else "")
    if receipt.evidence == "derived":
        return f"All {told} recomputed from the core alone."
    if not absent:
        return f"All {told} recomputed from {' and '.join(d.name for d in receipt.data)}."
    known = "the committed statistic" if len(absent) == len(receipt.data) else "the files and the committed statistic"
    rest = f"{missing} more metrics and the statistic" if missing else "the statistic itself"
    return f"{told} recomputed from {known}; {rest} would need {' and '.join(absent)}."
