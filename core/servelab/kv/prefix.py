"""The prefix cache: a radix tree over full blocks, so that equal beginnings are stored once.

A node is one full block. It is found under (parent node, hash of its content) and believed only after the content
itself compares equal, so a hash collision is a miss and never a foreign hit. Since the parent is a node and not a
hash, equality of one block under equal parents means equality of the whole prefix, by induction.

Each salt has its own root. A root is a number of this cache that no content and no salt can spell, so what one
namespace stores cannot be reached from another, whatever extra keys a request carries in its content.

The idea: vLLM's automatic prefix caching (hash chain) and SGLang's RadixAttention (Zheng et al. 2023,
arXiv:2312.07104).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

Content = Hashable
"""All that identifies one full block: its tokens, and any extra key (image, adapter) beside them."""


@dataclass(slots=True, eq=False)
class Node:
    """A cached block: `id` counts up from 0 per cache, `parent` is a node id or a root (negative)."""

    id: int
    parent: int
    content: Content
    block: int
    children: set[int] = field(default_factory=set)


def full_blocks(tokens: Sequence[int], block_size: int, extra: Hashable = None) -> list[Content]:
    """Contents of the full blocks of a token sequence: `len(tokens) // block_size` pairs (extra, tokens)."""
    if block_size < 1:
        raise ValueError(f"block size {block_size} is outside 1…; use at least 1 token a block")
    ends = range(block_size, len(tokens) + 1, block_size)
    return [(extra, tuple(tokens[end - block_size : end])) for end in ends]


class PrefixCache:
    """A tree of nodes per salt. `hasher` may be any function of a content; a bad one costs hits, never correctness."""

    __slots__ = ("nodes", "_index", "_roots", "_hasher", "_next")

    def __init__(self, hasher: Callable[[Content], int] = hash) -> None:
        self.nodes: dict[int, Node] = {}
        self._index: dict[tuple[int, int], Node] = {}
        self._roots: dict[Hashable, int] = {}
        self._hasher = hasher
        self._next = 0

    def root(self, salt: Hashable) -> int:
        """The root of a namespace, a negative number given out at first use."""
        return self._roots.setdefault(salt, -1 - len(self._roots))

    def match(self, contents: Sequence[Content], salt: Hashable = 0) -> list[Node]:
        """The longest cached prefix of `contents`, head first."""
        found: list[Node] = []
        parent = self._roots.get(salt)
        if parent is None:
            return found
        get, hasher = self._index.get, self._hasher
        for content in contents:
            node = get((parent, hasher(content)))
            if node is None or node.content != content:
                break
            found.append(node)
            parent = node.id
        return found

    def insert(self, parent: int, content: Content, block: int) -> Node | None:
        """The node of `content` under `parent`: a new one that `block` backs, or the one already there.

        None when it cannot be cached: the parent has been evicted, or another content sits on the same hash.
        """
        key = (parent, self._hasher(content))
        node = self._index.get(key)
        if node is not None:
            return node if node.content == content else None
        if parent >= 0:
            if parent not in self.nodes:
                return None
            self.nodes[parent].children.add(self._next)
        node = self.nodes[self._next] = self._index[key] = Node(self._next, parent, content, block)
        self._next += 1
        return node

    def forget(self, node_id: int) -> list[Node]:
        """Remove a node and all under it (unreachable without it); returns the removed nodes, the named one first."""
        if node_id not in self.nodes:
            raise ValueError(f"node {node_id} is not in the cache ({len(self.nodes)} nodes); forget a node once")
        parent = self.nodes[node_id].parent
        if parent >= 0:
            self.nodes[parent].children.discard(node_id)
        gone = list(self._subtree(node_id))
        for node in gone:
            del self.nodes[node.id]
            del self._index[node.parent, self._hasher(node.content)]
        return gone

    def check(self) -> None:
        """The invariants: every node is indexed once, hangs under a living parent or a root, and backs one block."""
        assert len(self._index) == len(self.nodes), "index and nodes differ"
        roots = set(self._roots.values())
        for node in self.nodes.values():
            assert self._index[node.parent, self._hasher(node.content)] is node, f"node {node.id} is misplaced"
            assert node.parent in roots or node.id in self.nodes[node.parent].children, f"node {node.id} is an orphan"
            assert all(self.nodes[child].parent == node.id for child in node.children), f"node {node.id}: stray child"
        blocks = [node.block for node in self.nodes.values()]
        assert len(set(blocks)) == len(blocks), "two nodes are backed by one block"

    def _subtree(self, node_id: int) -> Iterator[Node]:
        pending = [node_id]
        while pending:
            node = self.nodes[pending.pop()]
            yield node
            pending.extend(sorted(node.children))
