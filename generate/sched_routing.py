"""sched_routing, derived: what prefix caches save behind three routers, for one to eight replicas."""

from writer import Plan, main

from servelab.receipt.sched import routing_result

PLAN = Plan(
    kind="sched_routing",
    system="radixlite",
    evidence="derived",
    device="core",
    workload={
        "requests_per_prefix": [16, 16, 16, 15, 15],
        "repeat": 8,
        "shared_blocks": 71,
        "blocks": 72,
        "replicas": [1, 2, 4, 8],
    },
    losses=(
        "Caches never evict and requests come one at a time: the most that each router can save.",
        "Routing has a cost of its own, a lookup per prompt block, which is not in these numbers.",
        "Random order is one shuffle; its formula is an expectation.",
        "92.3 against 73.4 % is true of four replicas and this share of shared tokens; with one replica all are equal.",
    ),
    tolerance={
        "affinity_4_saved_percent": (92.2, 92.4),
        "round_robin_4_saved_percent": (73.2, 73.5),
        "random_4_saved_percent": (73.0, 74.2),
    },
)

if __name__ == "__main__":
    main(PLAN, lambda files: routing_result(PLAN.workload))
