"""The block pool: free order, errors that change nothing, and invariants."""

import os
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

from servelab.kv.blocks import BlockPool

CORE = Path(__file__).resolve().parents[2] / "core"


def counts(pool):
    return pool.free, pool.evictable, pool.in_use


def test_free_order_is_partial_then_never_used_then_cached_tail_first():
    """vLLM v1's free order: un-hashed partial blocks, then never-used ones, then cached ones from the tail."""
    evicted = []
    pool = BlockPool(6, lambda block, node: evicted.append((block, node)))
    table = pool.alloc(4)
    for block in table[:3]:
        pool.label(block, 10 + block)
    pool.release(table)
    assert counts(pool) == (3, 3, 0)
    assert pool.alloc(6) == [3, 4, 5, 2, 1, 0]
    assert evicted == [(2, 12), (1, 11), (0, 10)]
    assert counts(pool) == (0, 0, 6)


def test_a_touched_cached_block_moves_behind_the_others():
    pool = BlockPool(3)
    first, second, third = pool.alloc(3)
    for node, block in enumerate((first, second, third)):
        pool.label(block, node)
        pool.release([block])
    pool.share([first])
    assert counts(pool) == (0, 2, 1)
    pool.release([first])
    assert pool.alloc(3) == [second, third, first]


def test_cached_order_is_an_exact_lru_of_releases():
    """Against a second implementation: an ordered dictionary of the order of release."""
    pool, order = BlockPool(50), OrderedDict()
    for node, block in enumerate(pool.alloc(50)):
        pool.label(block, node)
        pool.release([block])
        order[block] = None
    for i in range(500):
        block = (i * 37 + i * i) % 50
        pool.share([block])
        pool.release([block])
        order.move_to_end(block)
        assert pool.cached() == list(order)
    assert pool.alloc(50) == list(order)


def test_a_block_listed_twice_is_refused_and_counted_once():
    """vllm#42571: one block appeared twice in a list to free, and the free count rose by two."""
    pool = BlockPool(4)
    a, b = pool.alloc(2)
    pool.share([a])
    with pytest.raises(ValueError, match=f"block {a} is listed twice"):
        pool.release([a, b, a])
    assert counts(pool) == (2, 0, 2)
    assert pool.refs[a] == 2
    pool.release([a, b])
    assert counts(pool) == (3, 0, 1)
    with pytest.raises(ValueError, match=f"block {b} is free already"):
        pool.release([a, b])
    assert counts(pool) == (3, 0, 1)
    pool.release([a])
    assert counts(pool) == (4, 0, 0)
    pool.check()


def test_shared_blocks_count_once_in_every_total():
    """sglang#35270: shared pages counted twice in what could be evicted; free + evictable + in use is the total."""
    pool = BlockPool(5)
    table = pool.alloc(3)
    for node, block in enumerate(table):
        pool.label(block, node)
    pool.share(table)
    pool.share(table[:2])
    assert counts(pool) == (2, 0, 3)
    pool.release(table)
    assert counts(pool) == (2, 0, 3)
    pool.release(table[:2])
    assert counts(pool) == (2, 0, 3)
    pool.release(table)
    assert counts(pool) == (2, 3, 0)
    assert pool.available == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BlockPool(0), "at least 1"),
        (lambda: BlockPool(-3), "pool of -3 blocks"),
        (lambda: BlockPool(2).alloc(3), "3 blocks asked for, 0 to 2 of 2"),
        (lambda: BlockPool(2).alloc(-1), "-1 blocks asked for"),
        (lambda: BlockPool(2).release([0]), "use blocks that alloc gave"),
        (lambda: BlockPool(2).share([-1]), "use blocks that alloc gave"),
        (lambda: BlockPool(2).label(0, 0), "label a held block"),
    ],
)
def test_errors_name_the_value_and_the_range(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sharing_a_block_without_content_is_refused():
    pool = BlockPool(2)
    (block,) = pool.alloc()
    pool.release([block])
    with pytest.raises(ValueError, match="neither owner nor content"):
        pool.share([block])


def test_a_failed_alloc_takes_nothing():
    pool = BlockPool(3)
    pool.alloc(2)
    with pytest.raises(ValueError, match="asked for"):
        pool.alloc(2)
    assert counts(pool) == (1, 0, 2)


def test_opening_a_large_pool_makes_no_list_of_its_blocks():
    pool = BlockPool(10**9)
    assert pool.free == 10**9
    assert pool.alloc(2) == [0, 1]
    assert len(pool.refs) == len(pool.nodes) == 2


@pytest.mark.parametrize("debug", ["0", "1"])
def test_check_runs_after_every_operation_under_servelab_debug(debug):
    code = (
        "from servelab.kv.blocks import BlockPool\n"
        "pool = BlockPool(4); pool.alloc(2); pool.release([0]); pool._loose.insert(0, 1)\n"
        "try: pool.alloc(1); print('unseen')\n"
        "except AssertionError as error: print('seen')\n"
    )
    env = {**os.environ, "SERVELAB_DEBUG": debug, "PYTHONPATH": str(CORE)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.strip() == ("seen" if debug == "1" else "unseen")
