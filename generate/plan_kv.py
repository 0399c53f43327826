"""plan_kv, derived: KV bytes per token and parameters of well-known models, from their configurations."""

from writer import Plan, main

from servelab.receipt.plan import kv_result

MODELS = (
    "Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B", "Llama-4-Scout-17B-16E-Instruct", "Mistral-7B-v0.3",
    "Mixtral-8x7B-v0.1", "Qwen2.5-7B", "Qwen3-8B", "Qwen3-235B-A22B", "Qwen3-Next-80B-A3B-Instruct", "DeepSeek-V3",
    "gemma-3-27b-it", "gpt-oss-20b", "gpt-oss-120b", "GLM-4.5", "Kimi-K2-Instruct", "Jamba-v0.1",
)  # fmt: skip

PLAN = Plan(
    kind="plan_kv",
    system="infersize",
    evidence="derived",
    device="core",
    workload={"models": list(MODELS), "format": "bf16"},
    losses=(
        "Bytes per token while no window is full; a windowed layer adds nothing after its window.",
        "Recurrent layers (state spaces, linear attention) keep a state per sequence and nothing per token: it is in "
        "a plan’s memory, not in these figures.",
        "A latent cache (MLA) is counted as DeepSeek keeps it: once for all heads, and whole on every rank.",
        "Seventeen models’ counts differ from the published ones, by 1 % at most: those are rounded by the publisher, "
        "or count parts that a configuration does not state.",
    ),
    tolerance={
        "deepseek_v3_kv_bytes": (70272, 70272),
        "llama_3_1_8b_kv_bytes": (131072, 131072),
        "models": (60, 1000),
        "models_exact": (49, 1000),
        "params_error_percent_most": (0, 1),
    },
)

if __name__ == "__main__":
    main(PLAN, lambda files: kv_result(PLAN.workload))
