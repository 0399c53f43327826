"""Two outside views of a simulation: an audit of its log with real tokens, and a plain tick-by-tick scheduler."""

from collections import Counter, deque

from servelab.kv.request import output_content


def text(request, sample):
    """The tokens of one sample, prompt and output, as (content, k)."""
    segments = (*request.prompt, (output_content(request.id, sample), request.output))
    return [(content, k) for content, length in segments for k in range(length)]


class Audit:
    """Physical blocks driven by events alone; every table must read back its sequence's own tokens at its finish."""

    def __init__(self, log, requests):
        by_id = {r.id: r for r in requests}
        self.log = log
        self.text = {info.seq: text(by_id[info.request], info.sample) for info in log.seqs}
        self.salt = {info.seq: by_id[info.request].salt for info in log.seqs}
        self.tables, self.refs, self.blocks, self.node, self.parked = {}, Counter(), {}, {}, set()
        self.path, self.done, self.now = {}, Counter(), 0
        self.usage = []

    def run(self):
        log, shown = self.log, (0, 0)
        for i, event in enumerate(log.events):
            assert 0 <= self.now <= event.t <= log.end and -1 <= event.block < log.blocks
            self.now = event.t
            getattr(self, event.kind)(event)
            held = {block for block, n in self.refs.items() if n}
            assert not held & self.parked and len(held) + len(self.parked) <= log.blocks
            if (i + 1 == len(log.events) or log.events[i + 1].t > event.t) and (len(held), len(self.parked)) != shown:
                shown = len(held), len(self.parked)
                self.usage.append((event.t, *shown))
        assert self.done == Counter(info.seq for info in log.seqs), "every sequence finishes once"
        assert not any(self.refs.values()) and not any(self.tables.values()), "leaked blocks"
        return self

    def fill(self, block):
        """Tokens in the block by the end of the tick before now, or written at once now."""
        tokens, start = self.blocks[block]
        return tokens if start is None else tokens[: start[1] + max(self.now - start[0], 0)]

    def reads(self, seq, upto):
        got = [token for block in self.tables[seq] for token in self.fill(block)]
        assert got[:upto] == self.text[seq][:upto] and len(got) >= upto

    def admit(self, e):
        assert not self.tables.get(e.seq) and 0 <= e.other < e.tokens
        self.tables[e.seq] = []

    def alloc(self, e):
        assert e.refs == 1 and not self.refs[e.block] and e.block not in self.parked | set(self.node)
        assert e.slot == len(self.tables[e.seq])
        self.tables[e.seq].append(e.block)
        self.refs[e.block], self.blocks[e.block] = 1, ([], None)

    def share(self, e):
        self.parked.discard(e.block)
        self.tables[e.seq].append(e.block)
        self.refs[e.block] += 1
        assert self.refs[e.block] == e.refs and e.slot == len(self.tables[e.seq]) - 1
        size = self.log.block_size
        tokens = self.fill(e.block)
        assert tokens == self.text[e.seq][e.slot * size :][: len(tokens)], "shared content differs"
        if e.block in self.node:
            assert self.path[self.node[e.block]] == (self.salt[e.seq], *self.text[e.seq][: (e.slot + 1) * size])

    def copy(self, e):
        self.blocks[e.block] = (self.fill(e.other)[: e.tokens], None)
        self.tables[e.seq][e.slot] = e.block
        self.refs[e.block] += 1
        self.refs[e.other] -= 1
        assert (self.refs[e.block], self.refs[e.other]) == (1, e.refs)

    def write(self, e, start):
        assert self.refs[e.block] == 1 and e.block not in self.node, "a write that others can see"
        assert self.tables[e.seq][e.slot] == e.block
        before = self.fill(e.block)
        assert len(before) == e.other and e.other + e.tokens <= self.log.block_size
        at = e.slot * self.log.block_size + e.other
        self.blocks[e.block] = (before + self.text[e.seq][at : at + e.tokens], start)

    def prefill(self, e):
        self.write(e, None)

    def decode(self, e):
        self.write(e, (e.t, e.other))

    def hash(self, e):
        tokens = self.fill(e.block)
        assert len(tokens) == self.log.block_size
        self.node[e.block] = e.other
        parent = self.path[e.tokens] if e.tokens >= 0 else (self.salt[e.seq],)
        self.path[e.other] = (*parent, *tokens)

    def evict(self, e):
        assert self.node.pop(e.block) == e.other
        self.parked.discard(e.block)

    def release(self, e):
        assert self.tables[e.seq].pop() == e.block and len(self.tables[e.seq]) == e.slot
        self.refs[e.block] -= 1
        assert self.refs[e.block] == e.refs

    def park(self, e):
        assert not self.refs[e.block] and e.block in self.node
        self.parked.add(e.block)

    def free(self, e):
        assert not self.refs[e.block] and e.block not in self.node

    def fork(self, e):
        self.tables[e.seq] = []

    def wait(self, e):
        assert e.tokens > e.other >= 0

    def preempt(self, e):
        assert self.tables[e.seq]

    def finish(self, e):
        self.reads(e.seq, len(self.text[e.seq]))
        self.done[e.seq] += 1


def tick_by_tick(requests, blocks, size):
    """The paged scheme, one tick and one token at a time: [(t, kind, seq)] of admissions, preemptions and finishes."""
    seqs = [(r, s) for r in requests for s in range(r.samples)]
    length = [r.tokens for r, _ in seqs]
    total = [r.tokens + r.output for r, _ in seqs]
    free, t, out = blocks, 0, []
    held, running, waiting, done = [0] * len(seqs), [], deque(), 0

    def leave(seq, kind):
        nonlocal free
        running.remove(seq)
        free, held[seq] = free + held[seq], 0
        out.append((t, kind, seq))

    while done < len(seqs):
        for seq in list(running):
            if length[seq] == total[seq]:
                leave(seq, "finish")
                done += 1
        for seq in list(running):
            while seq in running and length[seq] == held[seq] * size and not free:
                victim = running[-1]
                leave(victim, "preempt")
                waiting.appendleft(victim)
            if seq in running:
                if length[seq] == held[seq] * size:
                    free, held[seq] = free - 1, held[seq] + 1
                length[seq] += 1
        waiting.extend(i for i, (r, _) in enumerate(seqs) if r.arrival == t)
        while waiting:
            seq = waiting[0]
            if -(-min(length[seq] + 1, total[seq]) // size) > free:
                break
            running.append(waiting.popleft())
            held[seq] = -(-length[seq] // size)
            free -= held[seq]
            out.append((t, "admit", seq))
        t += 1
    return out
