"""A model of KV memory to hold `servelab.kv.tables` against: physical blocks with real tokens, driven by events alone.

`World` calls an operation on Tables, then applies the new events to its own block contents, tables, counts and nodes.
A write into a block that anyone else can see, a table that reads back other tokens than its sequence has, a count that
is not the sum of tables: each fails at once.
"""

import random
from collections import Counter

from servelab.kv.prefix import PrefixCache
from servelab.kv.tables import Tables

TEXTS = tuple(tuple(random.Random(n).choices(range(3), k=64)) for n in range(3))
SALTS = (0, "a")


class World:
    def __init__(self, blocks, block_size, hasher=hash, sharing=True):
        self.size = block_size
        self.total = blocks
        self.tables = Tables(blocks, block_size, PrefixCache(hasher) if sharing else None)
        self.tokens, self.full, self.salts = {}, {}, {}
        self.content, self.table, self.refs, self.node, self.parked = {}, {}, Counter(), {}, set()
        self.paths = {}
        self.read, self.next = 0, 0
        self.waiting = []
        self.seen = Counter()

    def admit(self, tokens, salt):
        seq, self.next = self.next, self.next + 1
        full = [tuple(tokens[i : i + self.size]) for i in range(0, len(tokens) - self.size + 1, self.size)]
        plan = self.tables.plan(len(tokens), full, salt)
        if plan.need > plan.available:
            self.waiting.append((tokens, salt))
            self.waiting = self.waiting[-4:]
            return None
        self.tokens[seq], self.full[seq], self.salts[seq] = list(tokens), full, salt
        reused = self.tables.admit(seq, len(tokens), full, salt, plan)
        assert reused < len(tokens), "a prompt without a token to compute has no logits"
        self.settle(seq)
        return seq

    def append(self, seq, token):
        if not self.tables.reserve(seq, 1):
            assert not self.tables.pool.available
            return False
        self.tokens[seq].append(token)
        if not len(self.tokens[seq]) % self.size:
            self.full[seq].append(tuple(self.tokens[seq][-self.size :]))
        self.tables.commit(seq, 1)
        self.settle(seq)
        return True

    def fork(self, parent):
        child, self.next = self.next, self.next + 1
        self.tokens[child], self.full[child] = list(self.tokens[parent]), list(self.full[parent])
        self.salts[child] = self.salts[parent]
        self.tables.fork(parent, child, self.full[child])
        self.settle(child)
        return child

    def release(self, seq):
        self.tables.release(seq)
        self.settle()
        tokens, salt = self.tokens.pop(seq), self.salts.pop(seq)
        del self.full[seq]
        return tokens, salt

    def preempt(self, seq):
        self.waiting.append(self.release(seq))

    def settle(self, seq=None):
        for event in self.tables.events[self.read :]:
            self.apply(event)
        self.read = len(self.tables.events)
        self.tables.now += 1
        self.compare()
        if seq is not None:
            self.reads_back(seq)

    def apply(self, e):
        self.seen[e.kind] += 1
        if e.kind == "alloc":
            assert not self.refs[e.block] and e.block not in self.parked and e.block not in self.node
            self.content[e.block] = []
            self.table.setdefault(e.seq, []).append(e.block)
            self.refs[e.block] += 1
        elif e.kind == "share":
            self.parked.discard(e.block)
            self.table.setdefault(e.seq, []).append(e.block)
            self.refs[e.block] += 1
            assert self.refs[e.block] == e.refs
        elif e.kind == "copy":
            self.content[e.block] = self.content[e.other][: e.tokens]
            self.table[e.seq][e.slot] = e.block
            self.refs[e.block] += 1
            self.refs[e.other] -= 1
            assert (self.refs[e.block], self.refs[e.other]) == (1, e.refs)
        elif e.kind in ("prefill", "decode"):
            assert self.refs[e.block] == 1 and e.block not in self.node, "a write that others can see"
            assert self.table[e.seq][e.slot] == e.block and len(self.content[e.block]) == e.other
            at = e.slot * self.size + e.other
            self.content[e.block] += self.tokens[e.seq][at : at + e.tokens]
        elif e.kind == "hash":
            assert len(self.content[e.block]) == self.size
            path = self.paths[e.tokens] if e.tokens >= 0 else (self.salts[e.seq],)
            self.paths[e.other] = (*path, *self.content[e.block])
            self.node[e.block] = e.other
        elif e.kind == "evict":
            assert self.node.pop(e.block) == e.other
            self.parked.discard(e.block)
        elif e.kind == "release":
            assert self.table[e.seq].pop() == e.block
            self.refs[e.block] -= 1
            assert self.refs[e.block] == e.refs
        elif e.kind == "park":
            assert not self.refs[e.block] and e.block in self.node
            self.parked.add(e.block)
        elif e.kind == "free":
            assert not self.refs[e.block] and e.block not in self.node

    def compare(self):
        """The pool's state is the events' state, refs are the sum of tables, and nothing leaks."""
        pool = self.tables.pool
        live = {seq: table for seq, table in self.table.items() if table}
        assert live == self.tables.tables
        counts = Counter(block for table in live.values() for block in table)
        assert counts == +self.refs
        assert pool.refs == [counts[block] for block in range(len(pool.refs))]
        assert {block: node for block, node in enumerate(pool.nodes) if node >= 0} == self.node
        assert pool.evictable == len(self.parked) and pool.in_use == len(counts)
        assert pool.free + pool.evictable + pool.in_use == self.total

    def reads_back(self, seq):
        """The sequence's tokens, read through its block table; and each labelled block's prefix, salt included."""
        table = self.tables.tables[seq]
        assert [token for block in table for token in self.content[block]] == self.tokens[seq]
        for slot, block in enumerate(table):
            if block in self.node:
                prefix = (self.salts[seq], *self.tokens[seq][: (slot + 1) * self.size])
                assert self.paths[self.node[block]] == prefix, "a block of another prefix or namespace"


def random_step(world, rng):
    """One random operation; which, and on what, is decided by `rng`."""
    seqs = list(world.tokens)
    dice = rng.random()
    if not seqs or dice < 0.12:
        if world.waiting and rng.random() < 0.5:
            tokens, salt = world.waiting.pop()
        else:
            text, most = rng.choice(TEXTS), world.size * min(world.total, 6)
            tokens, salt = list(text[: rng.randint(1, most)]), rng.choice(SALTS)
        while len(tokens) > world.size * world.total:
            tokens.pop()
        world.admit(tokens, salt)
    elif dice < 0.78:
        seq = rng.choice(seqs)
        if len(world.tokens[seq]) >= world.size * world.total:
            world.release(seq)
        elif not world.append(seq, rng.randrange(3)):
            world.preempt(seqs[-1])
    elif dice < 0.86:
        world.fork(rng.choice(seqs))
    elif dice < 0.95:
        world.release(rng.choice(seqs))
    else:
        world.preempt(rng.choice(seqs))
