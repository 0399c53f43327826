"""kv_prefix, replayed: prefix-cache hits on Mooncake's conversation and synthetic traces: infinite, LRU and Belady."""

from writer import Plan, main

from servelab.kv import reuse, trace
from servelab.receipt.kv import CURVE, prefix_result
from servelab.receipt.result import Files, Result

TRACES = {"conversation": "mooncake_fast25_conversation.jsonl.gz", "synthetic": "mooncake_fast25_synthetic.jsonl.gz"}

PLAN = Plan(
    kind="kv_prefix",
    system="mini-infer",
    evidence="replayed",
    device="replay",
    workload={
        "traces": TRACES,
        "source": "github.com/kvcache-ai/Mooncake (FAST'25), Apache-2.0, keys renamed",
        "block_tokens": trace.HASH_BLOCK,
        "capacities": list(reuse.CAPACITIES),
        "curve": list(CURVE),
    },
    losses=(
        "Prompts only: output tokens and running requests take no memory here, so a real cache of this size hits less.",
        "A hit counts each block by itself; prefill can skip only a leading run, which is the usable count beside it.",
        "Belady's policy knows the future; it bounds what any policy can hit in blocks and is no engine's policy.",
        "Blocks of 512 tokens, as the trace's hashes are; smaller blocks would hit a little more.",
    ),
    tolerance={
        "conversation_infinite_hits": (105710, 105710),
        "conversation_references": (288500, 288500),
        "conversation_infinite_hit_percent": (36.635, 36.645),
        "conversation_infinite_hit_token_percent": (37.355, 37.365),
        "synthetic_infinite_hit_percent": (63.955, 63.965),
    },
    data=tuple(TRACES.values()),
)


def run(files: Files) -> Result:
    traces = {name: trace.read(files[file], file) for name, file in TRACES.items()}
    return prefix_result(traces, reuse.CAPACITIES, CURVE)


if __name__ == "__main__":
    main(PLAN, run)
