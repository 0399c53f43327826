"""A claim is a number in prose that somebody can check: "kv_pages.shared_blocks" → 204 blocks, derived, n = 8.

Prose names the metric and never types the number. `resolve` refuses what is not backed: a claim that no receipt
binds, a receipt whose bytes are not the attested ones, a value outside its receipt's tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from servelab.receipt.numbers import Number
from servelab.receipt.schema import Evidence, Receipt

TIGHT = ("×",)
"""Units that stand directly behind the number; all others after a space."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A resolved claim: what a page prints and links to; `receipt` is the path relative to the receipts folder."""

    id: str
    value: Number
    unit: str
    n: int
    ci95: tuple[Number, Number] | None
    evidence: Evidence
    receipt: str

    def text(self, digits: int | None = None) -> str:
        """ "204 blocks", "0.544 %", "2.62×", "105,710 references"; `digits` decimals, by default 3 significant
        digits."""
        return number(self.value, self.unit, digits)

    def interval(self, digits: int | None = None) -> str:
        """ "95 % interval 0.51 to 0.58 %", or "" where the receipt has none."""
        if self.ci95 is None:
            return ""
        return f"95 % interval {number(self.ci95[0], '', digits)} to {number(self.ci95[1], self.unit, digits)}"


def number(value: Number, unit: str = "", digits: int | None = None) -> str:
    """A number with thousands separators and its unit. Counts are printed whole, reals with `digits` decimals."""
    if isinstance(value, int) and digits is None:
        body = f"{value:,}"
    else:
        places = digits if digits is not None else max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
        body = f"{value:,.{places}f}"
    body = body.replace("-", "−")
    return f"{body}{'' if unit in TIGHT else ' '}{unit}" if unit else body


def resolve(claim: str, receipts: Mapping[str, Receipt], attested: Mapping[str, str] | None = None) -> Claim:
    """The claim "<kind>.<metric>". `attested`: path → sha256 as signed (`attest.subjects`); None leaves that check out.

    ValueError names the claim and what is wrong: unbound, no receipt, changed receipt, broken tolerance.
    """
    kind, dot, metric = claim.partition(".")
    if not dot or not metric:
        raise ValueError(f"claim {claim!r} is not <kind>.<metric>; write e.g. kv_pages.shared_blocks")
    if kind not in receipts:
        raise ValueError(
            f"claim {claim!r}: no receipt of kind {kind!r}; run generate/{kind}.py, or use one of {_list(receipts)}"
        )
    receipt = receipts[kind]
    if claim not in receipt.claims:
        raise ValueError(f"claim {claim!r} is not bound by {receipt.path}; it binds {_list(receipt.claims)}")
    _check_attested(claim, receipt, attested)
    if metric in (bad := broken(receipt)):
        raise ValueError(f"claim {claim!r}: {bad[metric]}")
    m = receipt.metrics[metric]
    return Claim(claim, m.value, m.unit, m.n, m.ci95, receipt.evidence, receipt.path)


def broken(receipt: Receipt) -> dict[str, str]:
    """Metric → one sentence, for each tolerance that the receipt's own value leaves."""
    return {
        name: f"{receipt.kind}.{name} is {receipt.metrics[name].value}, outside its tolerance {bound.min} to "
        f"{bound.max}; mend the code or, if the new value is right, the tolerance and the prose"
        for name, bound in receipt.tolerance.items()
        if not bound.min <= receipt.metrics[name].value <= bound.max
    }


def _check_attested(claim: str, receipt: Receipt, attested: Mapping[str, str] | None) -> None:
    if attested is None or attested.get(receipt.path) == receipt.sha256:
        return
    what = "is not the one that was attested" if receipt.path in attested else "is not attested"
    raise ValueError(
        f"claim {claim!r}: {receipt.path} {what}; restore it from git, or run servelab receipts attest --key FILE"
    )


def _list(names: Mapping[str, object] | tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
