"""The receipt room: numbers that show their evidence.

    generate/<kind>.py ──▶ receipts/<kind>/<device>-<date>.json ──attest──▶ receipts/attestation.json
                                     │
                     load ──▶ Receipt ──resolve──▶ Claim (prose) · recompute ──▶ rows, committed beside recomputed

`schema` says what a receipt is, `canonical` how its bytes are written, `store` where it lies, `recompute` does it
again, `attest` signs and checks signatures, `verify` finds everything that is wrong, `claims` hands numbers to prose.
The read side (load, claims, recompute) is pure Python and runs in a browser tab.
"""

from servelab.receipt.claims import Claim, resolve
from servelab.receipt.schema import Metric, Receipt, read
from servelab.receipt.store import load, load_all

__all__ = ["Claim", "Metric", "Receipt", "load", "load_all", "read", "resolve"]
