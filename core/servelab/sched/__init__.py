"""The scheduling room: requests over time through an engine's iterations. Time is whole picoseconds.

`request` and `arrivals` are workloads, `engine` with `policies`, `memory` and `cost` what runs them, `simulate` the run
(`replica` one engine in it, `reference` the same one step at a time), `metrics` and `gaps` what it was like.
"""
