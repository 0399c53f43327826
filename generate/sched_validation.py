"""sched_validation, replayed: the simulator beside recordings of vLLM on an H200, which are in generate/runs."""

from writer import RUNS, Plan, main

from servelab.receipt.result import Files, Result
from servelab.receipt.validation import validation_result
from servelab.sched.runs import read_run

FILES = tuple(path.name for path in sorted(RUNS.glob("*.json.gz")))

PLAN = Plan(
    kind="sched_validation",
    system="sched-sim",
    evidence="replayed",
    device="replay",
    workload={
        "engine": "vLLM 0.24.0 on one NVIDIA H200, bf16, random weights in real shapes, no prefix cache",
        "recorded_by": "generate/engine_steps.py",
        "in_sample": "recordings whose name begins with fit-, of all files of one engine together",
        "told": "the speed of the host's CPU at each step, read off the duration of schedule()",
    },
    losses=(
        "Asked: TPOT and E2E (mean, median) of every held-out run within 2 %, their 99th percentile within 5 %, "
        "throughput within 1 %, a step within 3 %: met by some runs, not by all, and by few of the small models. The "
        "medians by engine (…_async_…, …_sync_…) and the largest (…_most) say how far.",
        "A 0.5B or 1.5B model on this GPU waits for its CPU in nearly every step, and the CPU was up to twice as fast "
        "in one run as in the next. Blind, nobody can know that; told, most runs come out much nearer.",
        "Under overload, and wherever a step's time grows with the batch, an error of the step becomes many times that "
        "in a request's: the batch grows until it is paid.",
        "An asynchronous engine launches a step while the GPU is at the one before; the simulator sets each step's "
        "launch beside its own GPU time, which is simpler. Mixed steps with more than 200 decodes beside prompts come "
        "out several percent too short.",
        "The 99th percentile of the gaps between tokens is far off (itl_p99_error_percent_median): real steps jitter, "
        "the simulator's do not.",
        "Random weights: sampled tokens mean nothing, and every request runs to its stated length.",
    ),
    tolerance={"composed_alike_percent_least": (99, 100)},
    data=FILES,
)


def run(files: Files) -> Result:
    return validation_result(read_run(files[name], name) for name in FILES)


if __name__ == "__main__":
    main(PLAN, run)
