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
        "in_sample": "recordings whose name begins with fit-: the CPU's coefficients from each file's own, the GPU's "
        "from all files of an engine that tell its time apart, with those held",
        "told": "the speed of the host's CPU around each step: its own time, or in older files that of schedule()",
    },
    losses=(
        "Asked: TPOT and E2E (mean, median) of every held-out run within 2 %, their 99th percentile within 5 %, "
        "throughput within 1 %, a step within 3 %: met by most runs of the 7B model, and by few of the small ones. "
        "The medians by engine (…_async_…, …_sync_…) and the largest (…_most) say how far.",
        "A 0.5B or 1.5B model on this GPU waits for its CPU in nearly every step, and the CPU was up to twice as fast "
        "in one run as in the next. Blind, nobody can know that; told, most runs come out much nearer.",
        "Under overload, and wherever a step's time grows with the batch, an error of the step becomes many times that "
        "in a request's: the batch grows until it is paid.",
        "The same step takes a GPU that works without pause up to 8 % longer than one that rests (its clock). A fit "
        "knows the average of its recordings: bursts come out a little short, calm loads a little long.",
        "The older files (…-1, 7b-async-2 and -3) do not tell the CPU's and the GPU's time apart. Told by schedule() "
        "alone, which is coarser, their runs stay further off.",
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
