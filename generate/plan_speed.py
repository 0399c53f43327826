"""plan_speed, replayed: the planner beside published measurements of engines on the H200."""

from writer import Plan, main

from servelab.plan.engines import fitted
from servelab.receipt.plan import speed_result

RUNS = "silicon_sample.csv.gz"
DEVICE = "H200 SXM"

PLAN = Plan(
    kind="plan_speed",
    system="infersize",
    evidence="replayed",
    device="replay",
    workload={
        "device": DEVICE,
        "measured_by": "AIConfigurator’s regression data (NVIDIA): vLLM, SGLang and TensorRT-LLM, closed loops",
        "fitted_by": "generate/plan_fit.py",
        "split": "by workload (prompt and output tokens): every second one of this device’s is held out",
        "held_out": [list(workload) for workload in fitted()["held_out"]],
        "calibration": "factors of a deployment’s own from its fitted workloads, where it has any",
    },
    losses=(
        "Asked: a 90th percentile of the TPOT errors of 15 %. Dense models meet it, mixtures of experts do not, and "
        "neither do both together. The rows beyond it: DeepSeek-R1 with experts spread over ranks, whose time a token "
        "falls with the length of the answer as speculation’s does, though the rows state none; three of Qwen’s with "
        "experts spread; and SGLang’s Qwen3-235B.",
        "Tried for it: coefficients of their own for latent attention (worse), a share of prompts in decodes fitted "
        "per deployment (no gain), and a factor that grows with the answer’s length (worse elsewhere).",
        "TTFT has a long tail: some rows state a mean over a run’s first seconds, when all clients ask at once, and "
        "some the steady state; the file does not say which.",
        "Disaggregated rows that do not state how many workers share the clients are not answered; they are counted.",
        "The factors of a deployment need a few measured runs of it. Without any, the errors are those that the "
        "intervals on the page are made of: several times as large.",
    ),
    tolerance={
        "held_out_dense_tpot_error_percent_median": (0, 5),
        "held_out_experts_tpot_error_percent_median": (0, 10),
        "held_out_dense_ttft_error_percent_median": (0, 20),
        "held_out_experts_ttft_error_percent_median": (0, 20),
        "answered_percent": (95, 100),
        "impossible_rows": (0, 0),
    },
    data=(RUNS,),
)

if __name__ == "__main__":
    main(PLAN, lambda files: speed_result(files[RUNS], DEVICE))
