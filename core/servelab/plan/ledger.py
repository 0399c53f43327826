"""The norm ledger: bytes that RMSNorm and the residual before it move, by how they are fused.

Each site adds a vector to the residual and normalises the sum. A plan lists what a token's vectors do there; a read or
a write of one vector is hidden size · 2 bytes. The norm's own weight is read once for all tokens and left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from servelab.plan.formats import named, weight_bytes
from servelab.plan.shapes import Shape

PLANS: dict[str, tuple[str, ...]] = {
    "apart": (
        "read x", "read residual", "write sum",  # the addition
        "read sum", "read sum again", "write normalised",  # the mean of squares, then the scaling
    ),
    "fused": ("read x", "read residual", "write sum", "write normalised"),
}  # fmt: skip
"""Vectors moved per token and site."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Bytes per token: of both plans over all `sites`, what fusing saves, and its share of a decode step's weights."""

    sites: int
    vector: int
    apart: int
    fused: int
    share: float

    @property
    def saved(self) -> int:
        return self.apart - self.fused

    @property
    def saved_share(self) -> float:
        return self.saved / self.apart


def ledger(shape: Shape, quant: str = "bf16") -> Ledger:
    """Two sites a layer. The share is of the bytes of weights that one token at batch 1 reads."""
    sites, vector = 2 * shape.layers, 2 * shape.hidden
    apart, fused = (len(PLANS[name]) * vector * sites for name in ("apart", "fused"))
    return Ledger(sites, vector, apart, fused, (apart - fused) / weight_bytes(shape.used, named(quant)))
