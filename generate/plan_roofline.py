"""plan_roofline, replayed: an H200's measured ceilings and vLLM's decode steps beside the data sheet and the planner.

The recording is generate/runs/h200-ceilings.json, by generate/plan_ceilings.py on that machine.
"""

from writer import Plan, main

from servelab.receipt.plan import roofline_result

RUN = "h200-ceilings.json"
DEVICE = "H200 SXM"

PLAN = Plan(
    kind="plan_roofline",
    system="roofline-planner",
    evidence="replayed",
    device="replay",
    workload={
        "device": DEVICE,
        "ceilings": "torch 2.11, float32: copy and read of 8 GiB; products of 8192 × 8192 in bf16 and fp8",
        "decode": "vLLM 0.24.0, bf16, random weights in real shapes, prompts of 512 tokens, 1 to 256 streams",
        "recorded_by": "generate/plan_ceilings.py",
        "predicted_by": "the coefficients for vLLM and dense models, which were fitted to other people’s runs of other "
        "models: nothing here was fitted to this recording",
    },
    losses=(
        "The planner adds the time for memory and for arithmetic; the GPU overlaps them. The 7B model is predicted "
        "well up to 32 streams, and up to a third too slow at 256.",
        "The models of 1.5 and 0.5 billion parameters wait for the CPU in nearly every step, which the coefficients, "
        "fitted to large models, know little of: their steps take up to three times as long as predicted.",
        "Random weights: the sampler’s work is real, the tokens mean nothing.",
        "A read is the best of three kernels of torch; a hand-written one may reach more.",
        "One machine, one hour; its CPU is a virtual machine’s.",
    ),
    tolerance={"qwen2_5_7b_step_error_percent_median": (0, 10), "qwen2_5_7b_total_ratio": (50, 256)},
    data=(RUN,),
)

if __name__ == "__main__":
    main(PLAN, lambda files: roofline_result(files[RUN], DEVICE))
