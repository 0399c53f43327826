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
        "Asked: TPOT and E2E (mean, median) of every held-out run within 2 %, their 99th percentile within 5 %: not "
        "met. Under overload an error of the step time becomes many times that in a request's, since the batch grows "
        "until it is paid (…_error_percent_most); the median run is near (…_error_percent_median).",
        "Asked: at least twelve held-out runs of three models, asynchronous and not. held_out_runs says how many there "
        "are, of one model, asynchronous.",
        "The 99th percentile of the gaps between tokens is far off (itl_p99_error_percent_median): real steps jitter, "
        "the simulator's do not.",
        "The host is a virtual machine whose CPU is not equally fast all the time. Told its speed, the simulator is "
        "nearer; blind, it can only know the average of the in-sample runs.",
        "Random weights: sampled tokens mean nothing, and every request runs to its stated length.",
    ),
    tolerance={"composed_alike_percent_least": (99, 100)},
    data=FILES,
)


def run(files: Files) -> Result:
    return validation_result(read_run(files[name], name) for name in FILES)


if __name__ == "__main__":
    main(PLAN, run)
