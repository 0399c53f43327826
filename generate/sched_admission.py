"""sched_admission, derived: 300 requests in a burst at a fixed window and at a token bucket, then one server."""

from writer import Plan, main

from servelab.receipt.result import Result
from servelab.receipt.sched import admission_result, gcra_differences

PLAN = Plan(
    kind="sched_admission",
    system="gatekeeper",
    evidence="derived",
    device="core",
    workload={
        "requests": 300,
        "arrivals_per_s": "20",
        "service_s": "0.22",
        "rate_limit_per_s": "4.4",
        "burst": 20,
        "window_s": "20",
        "window_count": 88,
        "seeds": 2000,
        "gcra_events": 10_000_000,
    },
    losses=(
        "Both gates refuse about seven requests in ten: what is fast is fast for those who got in.",
        "One seed says 90 against 88; over many seeds the bucket admits fewer than the window in most.",
        "Refused requests do not come back; clients that retry would make the flood longer.",
        "One server with a constant service time stands for an engine.",
    ),
    tolerance={
        "fixed_window_admitted_median": (88, 88),
        "token_bucket_admitted_median": (85, 85),
        "token_bucket_admitted_90_percent": (3, 6),
        "fixed_window_p95_s": (14.2, 14.4),
        "token_bucket_p95_s": (4.2, 4.4),
        "gcra_differences": (0, 0),
    },
)


def run() -> Result:
    done = admission_result(PLAN.workload)
    return Result({**done.metrics, "gcra_differences": gcra_differences(PLAN.workload)})


if __name__ == "__main__":
    main(PLAN, lambda files: run())
