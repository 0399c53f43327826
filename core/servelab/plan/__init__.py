"""Planner: will a model fit, how fast will it be, at what price.

    config ── shapes ── architectures ── models ──┐
    formats ──────────────────────────────────────┤
    devices ──────────────────────────────────────┴── memory ── speed ── search ── money
"""
