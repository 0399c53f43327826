"""kv_pages, derived: eight conversations with one 512-token prefix, in preallocated slots, in pages, in shared
pages."""

from writer import Plan, main

from servelab.kv.pages import EXAMPLES, PRIVATE
from servelab.receipt.kv import pages_result

EXAMPLE = EXAMPLES["shared-prefix"]

PLAN = Plan(
    kind="kv_pages",
    system="pagemem",
    evidence="derived",
    device="core",
    workload={
        "example": "shared-prefix",
        "conversations": 8,
        "prefix_tokens": 512,
        "private_mean_tokens": 344,
        "private_tokens": list(PRIVATE),
        "block_size": EXAMPLE.block_size,
        "max_len": EXAMPLE.max_len,
        "blocks": EXAMPLE.blocks,
    },
    losses=(
        "A slot is exactly as long as the longest conversation; engines that preallocate reserve more, and waste more.",
        "All lengths are multiples of the block, so no last block is partly filled; that loss is in kv_waste.",
        "The conversations share a prefix by construction; how much real traffic shares is in kv_prefix.",
        "Blocks are counted with every conversation complete at once, the worst moment, and not over time.",
    ),
    tolerance={
        "preallocated_blocks": (504, 504),
        "paged_blocks": (428, 428),
        "shared_blocks": (204, 204),
        "paged_saved_percent": (15.0, 15.1),
        "sharing_saved_points": (44.4, 44.5),
        "fitting_conversations": (21, 21),
        "fitting_ratio": (2.6, 2.65),
    },
)

if __name__ == "__main__":
    main(PLAN, lambda files: pages_result(PLAN.workload))
