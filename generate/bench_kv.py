"""What one block operation costs, by pool size: `python generate/bench_kv.py [--json] [--repeats N]`.

"alloc+free" fills a pool of N blocks with tables of 100 and releases them all. "cached" labels every block as well, so
that released blocks stay evictable and each alloc evicts the least recently used one. Every cell of a repeat handles
10^6 blocks; sizes take turns; times are CPU time. The table shows medians over the repeats, in ns per block taken and
given back, and the median of the ratios to the smallest pool within a repeat.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable

try:
    from servelab.kv.blocks import BlockPool
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed here; . .venv/bin/activate first, which make build sets up")

SIZES = (10**3, 10**4, 10**5, 10**6)
TABLE = 100


def plain(pool: BlockPool) -> None:
    """Fill the pool with tables and release them, oldest first."""
    tables = [pool.alloc(TABLE) for _ in range(pool.total // TABLE)]
    for table in tables:
        pool.release(table)


def cached(pool: BlockPool) -> None:
    """The same with every block hashed: it stays evictable, and the next round's allocs evict it."""
    label = pool.label
    for _ in range(pool.total // TABLE):
        table = pool.alloc(TABLE)
        for block in table:
            label(block, block)
        pool.release(table)


WORK: dict[str, Callable[[BlockPool], None]] = {"alloc+free": plain, "cached": cached}


def measure(repeats: int) -> dict[str, dict[int, list[float]]]:
    """ns per block for each kind of work and pool size, one number per repeat."""
    out: dict[str, dict[int, list[float]]] = {name: {size: [] for size in SIZES} for name in WORK}
    pools = {name: {size: BlockPool(size) for size in SIZES} for name in WORK}
    for name, work in WORK.items():
        for pool in pools[name].values():
            work(pool)
    gc.collect()
    gc.disable()
    for _ in range(repeats):
        for name, work in WORK.items():
            for size, pool in pools[name].items():
                rounds = SIZES[-1] // size
                start = time.process_time_ns()
                for _ in range(rounds):
                    work(pool)
                out[name][size].append((time.process_time_ns() - start) / (rounds * size))
    gc.enable()
    return out


def opening() -> dict[int, float]:
    """µs to open a pool of each size."""
    out = {}
    for size in SIZES:
        start = time.perf_counter()
        for _ in range(1000):
            BlockPool(size)
        out[size] = (time.perf_counter() - start) * 1e3
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the samples as JSON")
    parser.add_argument("--repeats", type=int, default=7, help="interleaved repeats, at least 3 (default 7)")
    args = parser.parse_args()
    if args.repeats < 3:
        parser.error(f"--repeats {args.repeats} is outside 3…; a median needs at least 3")
    samples, opened = measure(args.repeats), opening()
    if args.json:
        print(json.dumps({"ns_per_block": samples, "open_us": opened, "repeats": args.repeats}, indent=1))
        return
    print(f"{'work':<12}{'blocks':>10}{'ns/block':>10}{'ratio':>8}   median of {args.repeats} interleaved repeats")
    for name, by_size in samples.items():
        for size, values in by_size.items():
            ratio = statistics.median(value / first for value, first in zip(values, by_size[SIZES[0]], strict=True))
            print(f"{name:<12}{size:>10,}{statistics.median(values):>10.1f}{ratio:>8.2f}")
    print("open a pool: " + ", ".join(f"{size:,} blocks {us:.2f} µs" for size, us in opened.items()))


if __name__ == "__main__":
    main()
