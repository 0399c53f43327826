"""The memory room: blocks, block tables, prefix cache, eviction, and what they cost in bytes.

`blocks` is the pool, `prefix` the tree of cached blocks, `tables` ties both to sequences, `simulate` runs requests
through them into an event `log`, `pages` compares three schemes on one workload, `eviction` replays reference streams.
"""
