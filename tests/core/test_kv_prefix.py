"""The prefix cache: longest prefix, namespaces, collisions, and prompts that the cache holds entirely."""

import pytest

from servelab.kv.prefix import PrefixCache, full_blocks
from servelab.kv.tables import Tables


def fill(cache, tokens, salt=0, size=4, extra=None, first_block=0):
    """Insert the full blocks of `tokens`; returns the node ids (None where refused)."""
    parent, out = cache.root(salt), []
    for i, content in enumerate(full_blocks(tokens, size, extra)):
        node = cache.insert(parent, content, first_block + i)
        out.append(node.id if node else None)
        if node is None:
            break
        parent = node.id
    cache.check()
    return out


def ids(nodes):
    return [node.id for node in nodes]


def test_match_is_the_longest_common_run_of_full_blocks():
    cache = PrefixCache()
    stored = list(range(20))
    assert fill(cache, stored) == [0, 1, 2, 3, 4]
    for cut in range(21):
        probe = stored[:cut] + [99] * (20 - cut)
        assert ids(cache.match(full_blocks(probe, 4))) == list(range(cut // 4))


def test_equal_blocks_under_different_parents_are_different_nodes():
    cache = PrefixCache()
    assert fill(cache, [1, 1, 1, 1, 5, 5, 5, 5]) == [0, 1]
    assert fill(cache, [2, 2, 2, 2, 5, 5, 5, 5], first_block=2) == [2, 3]
    assert ids(cache.match(full_blocks([5, 5, 5, 5], 4))) == []


def test_namespaces_with_a_forced_collision_miss():
    """vllm#12621, sglang#24638: a predictable root let one namespace hit another's entries."""
    cache = PrefixCache(hasher=lambda content: 0x5EED_5EED_5EED_5EED)
    secret = [7, 7, 7, 7]
    fill(cache, secret, salt="tenant a")
    fill(cache, [1, 1, 1, 1], salt="tenant b", first_block=1)
    fill(cache, [2, 2, 2, 2], first_block=2)
    assert ids(cache.match(full_blocks(secret, 4), salt="tenant a")) == [0]
    assert cache.match(full_blocks(secret, 4), salt="tenant b") == []
    assert cache.match(full_blocks(secret, 4)) == []
    assert cache.match(full_blocks([8, 8, 8, 8], 4), salt="tenant a") == []
    assert fill(cache, secret, salt="tenant c", first_block=3) == [3], "equal text, stored apart"


def test_a_base_request_carrying_another_namespace_as_extra_key_misses():
    """vllm#12621, sglang#24638: the namespace's own id, passed as extra key from outside, must open nothing."""
    cache = PrefixCache()
    secret = [7, 7, 7, 7]
    fill(cache, secret, salt="tenant a")
    fill(cache, [1, 1, 1, 1], salt="base", first_block=1)
    root = cache.root("tenant a")
    for guess in ("tenant a", root, ("tenant a",), (root, "tenant a"), str(root)):
        assert cache.match(full_blocks(secret, 4, extra=guess)) == []
        assert cache.match(full_blocks(secret, 4, extra=guess), salt="base") == []
    for salt in (root, str(root), ("tenant a",), 0, None):
        assert cache.match(full_blocks(secret, 4), salt=salt) == []


def test_extra_keys_are_compared():
    cache = PrefixCache(hasher=lambda content: 1)
    fill(cache, [1, 2, 3, 4], extra="image a")
    assert ids(cache.match(full_blocks([1, 2, 3, 4], 4, "image a"))) == [0]
    assert cache.match(full_blocks([1, 2, 3, 4], 4, "image b")) == []


def test_a_colliding_content_is_not_cached_and_takes_nothing_over():
    cache = PrefixCache(hasher=lambda content: 7)
    assert fill(cache, [1, 1, 1, 1]) == [0]
    assert fill(cache, [2, 2, 2, 2], first_block=1) == [None]
    assert cache.match(full_blocks([2, 2, 2, 2], 4)) == []
    assert ids(cache.match(full_blocks([1, 1, 1, 1], 4))) == [0]


def test_forgetting_a_node_forgets_all_under_it():
    cache = PrefixCache()
    fill(cache, list(range(12)))
    fill(cache, [0, 1, 2, 3, 9, 9, 9, 9], first_block=5)
    assert sorted(ids(cache.forget(1))) == [1, 2]
    cache.check()
    assert ids(cache.match(full_blocks(list(range(12)), 4))) == [0]
    assert sorted(ids(cache.forget(0))) == [0, 3]
    assert cache.nodes == {}
    with pytest.raises(ValueError, match="node 0 is not in the cache"):
        cache.forget(0)
    assert fill(cache, [0, 1, 2, 3]) == [4]


def test_a_child_of_an_evicted_parent_is_refused():
    cache = PrefixCache()
    fill(cache, [1, 2, 3, 4])
    cache.forget(0)
    assert cache.insert(0, (None, (5, 6, 7, 8)), 3) is None


@pytest.mark.parametrize(("length", "reused"), [(3, 0), (4, 3), (5, 4), (7, 4), (8, 7), (9, 8), (12, 11), (14, 12)])
def test_a_prompt_cached_entirely_recomputes_exactly_one_token(length, reused):
    """nano-vllm#144: the whole prompt cached and a multiple of the block left nothing to compute; one token must be."""
    tables = Tables(20, 4, PrefixCache())
    tokens = list(range(length))
    contents = full_blocks(tokens, 4)
    assert tables.admit(0, length, contents) == 0
    assert tables.admit(1, length, contents) == reused
    wrote = sum(e.tokens for e in tables.events if e.kind == "prefill" and e.seq == 1)
    assert wrote == length - reused >= 1
    if length % 4 == 0:
        assert wrote == 1
    tables.check()


def test_the_recomputed_token_goes_into_a_private_copy():
    """nano-vllm#144: the shared last block is copied, never written: its owner keeps it as it was."""
    tables = Tables(6, 4, PrefixCache())
    contents = full_blocks(list(range(8)), 4)
    tables.admit(0, 8, contents)
    tables.admit(1, 8, contents)
    assert tables.tables[0] == [0, 1]
    assert tables.tables[1] == [0, 2]
    assert tables.pool.refs == [2, 1, 1]
    copies = [e for e in tables.events if e.kind == "copy"]
    assert [(e.seq, e.block, e.other, e.tokens, e.refs) for e in copies] == [(1, 2, 1, 3, 1)]
    tables.release(1)
    assert tables.pool.nodes[2] == -1
    assert tables.pool.free == 6 - 2


def test_a_pool_with_no_room_for_the_copy_recomputes_the_block():
    """nano-vllm#144 in the tightest pool: the prompt fits, its copied block would not; admission must not deadlock."""
    tables = Tables(2, 4, PrefixCache())
    contents = full_blocks(list(range(8)), 4)
    tables.admit(0, 8, contents)
    tables.release(0)
    assert tables.admit(1, 8, contents) == 4
    tables.check()
    assert tables.tables[1] == [0, 1]


def test_bad_block_size_is_named():
    with pytest.raises(ValueError, match="block size 0"):
        full_blocks([1], 0)
