"""sched_cplan, replayed: four request lists under static and continuous batching, as once published and corrected."""

import json

from writer import Plan, main

from servelab.receipt.sched import cplan_result
from servelab.sched.cplan import CHUNK, PREFILL, SLOTS

LISTS = "cplan_requests.json"

PLAN = Plan(
    kind="sched_cplan",
    system="cplan",
    evidence="replayed",
    device="replay",
    workload={
        "rates_per_s": ["0.8", "1.5", "2.5", "4.0"],
        "requests": 100,
        "slots": SLOTS,
        "chunk_tokens": CHUNK,
        "prefill_ms_per_token": PREFILL,
        "decode_step_ms": "25·(0.4 + 0.6·b/32)",
        "recipe": "numpy default_rng(42): exponential gaps, 64 to 511 prompt tokens, 16 to 127 output tokens",
    },
    losses=(
        "The published accounting counts a decode step in static batching's TTFT and none in continuous batching's.",
        "It charges every chunk 512 tokens, also one of 64: the two mistakes nearly cancel.",
        "A static batch pays for its full width until its longest answer ends.",
        "One list of 100 requests per rate: no interval is stated.",
    ),
    tolerance={
        "r0_8_own_saved_percent": (90.95, 91.05),
        "r1_5_own_saved_percent": (93.85, 93.95),
        "r2_5_own_saved_percent": (94.65, 94.75),
        "r4_0_own_saved_percent": (96.15, 96.25),
        "r0_8_corrected_saved_percent": (91.85, 91.95),
        "r1_5_corrected_saved_percent": (94.25, 94.35),
        "r2_5_corrected_saved_percent": (95.05, 95.15),
        "r4_0_corrected_saved_percent": (96.25, 96.35),
    },
    data=(LISTS,),
)

if __name__ == "__main__":
    main(PLAN, lambda files: cplan_result(json.loads(files[LISTS])["by_rate_per_s"]))
