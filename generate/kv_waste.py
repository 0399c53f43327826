"""kv_waste, replayed: slots that no token fills on the Azure conversation trace, three definitions, six block sizes."""

from writer import Plan, main

from servelab.kv import trace, waste
from servelab.receipt.kv import waste_result

TRACE = "azure_llm_2023_conv.csv.gz"

PLAN = Plan(
    kind="kv_waste",
    system="pagemem",
    evidence="replayed",
    device="replay",
    workload={
        "trace": "Azure LLM inference 2023, conversation",
        "source": "github.com/Azure/AzurePublicDataset, CC-BY-4.0, columns renamed",
        "block_sizes": list(waste.BLOCK_SIZES),
        "definitions": list(waste.DEFINITIONS),
    },
    losses=(
        "Only internal fragmentation: blocks that wait in a cache or for a swap are not counted.",
        "Every request is taken alone; sharing would change both the allocated and the used slots.",
        "One service in one hour of November 2023; other traffic has other lengths.",
        "The expectation assumes that lengths end anywhere in a block; for blocks as long as the requests it is off.",
    ),
    tolerance={
        "b16_at_completion_percent": (0.5435, 0.5445),
        "b16_prompts_only_percent": (0.6615, 0.6625),
        "b16_over_decode_steps_percent": (0.6075, 0.6085),
    },
    data=(TRACE,),
)

if __name__ == "__main__":
    main(PLAN, lambda files: waste_result(waste.histograms(trace.read(files[TRACE], TRACE)), waste.BLOCK_SIZES))
