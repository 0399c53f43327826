"""How fast plans are solved: `python generate/bench_plan.py`. Asked: 5,000 in 0.3 s, one in 1 ms. Nothing is asserted.

The 5,000 are models × devices × layouts × formats × clients, each solved once with empty caches, as the median of the
repeats; the one is a plan of another model each time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from itertools import islice, product

try:
    from servelab.plan import devices, memory, models
    from servelab.plan.memory import Layout
    from servelab.plan.plan import Plan, solve
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed here; . .venv/bin/activate first, which make build sets up")

COUNT, LIMIT, ONE = 5_000, 0.3, 1.0


def plans() -> list[Plan]:
    shapes = [models.model(name) for name in models.table()]
    choices = product(shapes, devices.table().values(), (1, 2), ("bf16", "fp8"), (1, 64))
    return [Plan(s, d, Layout(tp), quant, clients=n) for s, d, tp, quant, n in islice(choices, 0, None, 7)][:COUNT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error(f"--repeats {args.repeats} is outside 1…; use 9")
    every, all_seconds, single = plans(), [], []
    for _ in range(args.repeats):
        for cached in (memory.rank_params, memory.rank_cache, memory.sequence_bytes):
            cached.cache_clear()
        begun = time.perf_counter()
        fits = sum(solve(plan).fits for plan in every)
        all_seconds.append(time.perf_counter() - begun)
    for cached in (memory.rank_params, memory.rank_cache, memory.sequence_bytes):
        cached.cache_clear()
    for plan in every[:: len(every) // 50]:
        begun = time.perf_counter()
        solve(plan)
        single.append(1e3 * (time.perf_counter() - begun))
    took, one = statistics.median(all_seconds), statistics.median(single)
    verdicts = ["pass" if value <= most else "FAIL" for value, most in ((took, LIMIT), (max(single), ONE))]
    print(f"{len(every):,} plans, {fits:,} fit: {took:.3f} s in CPython (asked: ≤ {LIMIT}) {verdicts[0]}")
    print(f"one plan: {one:.3f} ms, at most {max(single):.3f} (asked: ≤ {ONE}) {verdicts[1]}")


if __name__ == "__main__":
    main()
