"""kv_pool, measured: what one block operation costs by pool size, from the samples of bench_kv."""

from bench_kv import SIZES, TABLE, measure
from writer import Plan, main, measured

REPEATS = 9

PLAN = Plan(
    kind="kv_pool",
    system="pagemem",
    evidence="measured",
    device="cpu",
    workload={"sizes": list(SIZES), "table_blocks": TABLE, "blocks_per_sample": SIZES[-1], "repeats": REPEATS},
    losses=(
        "CPU time of one Python process; another interpreter or a loaded machine gives other nanoseconds.",
        "Ratios are taken within one interleaved repeat, so they are steadier than the times they come from.",
    ),
    tolerance={f"{work}_ratio_{size}_median": (0.8, 1.2) for work in ("alloc_free", "cached") for size in SIZES[1:]},
)


def samples() -> dict[str, list[float]]:
    """ns per block taken and given back, and its ratio to the smallest pool in the same repeat."""
    out: dict[str, list[float]] = {}
    for work, by_size in measure(REPEATS).items():
        name = work.replace("+", "_")
        for size, values in by_size.items():
            out[f"{name}_ns_{size}"] = values
            out[f"{name}_ratio_{size}"] = [a / b for a, b in zip(values, by_size[SIZES[0]], strict=True)]
    return out


if __name__ == "__main__":
    main(PLAN, lambda files: measured(samples(), lambda name: "ns per block" if "_ns_" in name else "×"))
