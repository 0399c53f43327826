"""sched_chunk, derived: long prompts beside decodes, in chunks from 64 to 8,192 tokens."""

from writer import Plan, main

from servelab.receipt.sched import chunk_result

PLAN = Plan(
    kind="sched_chunk",
    system="chunkpipe",
    evidence="derived",
    device="core",
    workload={
        "chunks": [64, 128, 256, 512, 1024, 1448, 2048, 4096, 8192],
        "prompts": 20,
        "prompt_tokens": 8192,
        "decodes": 8,
        "overhead_ps": 5_000_000_000,
        "token_ps": 20_000_000,
    },
    losses=(
        "Small chunks do not shorten TTFT: every one of them pays the overhead again. Their gain is the decodes' gap.",
        "A step costs a constant and a price per token; attention, which grows with the prompt, is left out.",
        "Where the best chunk lies depends on how a second of TTFT and one of a gap are weighed; here they are equal.",
    ),
    tolerance={
        "best_chunk_tokens": (1448, 1448),
        "best_formula_tokens": (1431, 1432),
        "c64_ttft_p95_ms": (825, 832),
        "c8192_stall_ms": (168, 170),
    },
)

if __name__ == "__main__":
    main(PLAN, lambda files: chunk_result(PLAN.workload))
