"""What one block operation costs, by pool size: `python generate/bench_kv.py [--json] [--repeats N]`.

Every row does the same number of operations on a pool of N blocks. "alloc+free" fills the pool with tables of 100 blocks and
releases them all; "cached" does so with every block labelled and the pool full of evictable blocks, so that each alloc
evicts the least recently used one. Sizes take turns within a repeat; a cell is the median over the repeats, in ns per block
taken and given back; the ratio is to the smallest pool.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable

from servelab.kv.blocks import BlockPool

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
                start = time.perf_counter()
                for _ in range(rounds):
                    work(pool)
                out[name][size].append((time.perf_counter() - start) * 1e9 / (rounds * size))
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
        first = statistics.median(by_size[SIZES[0]])
        for size, values in by_size.items():
            middle = statistics.median(values)
            print(f"{name:<12}{size:>10,}{middle:>10.1f}{middle / first:>8.2f}")
    print("open a pool: " + ", ".join(f"{size:,} blocks {us:.2f} µs" for size, us in opened.items()))


if __name__ == "__main__":
    main()
