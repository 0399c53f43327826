"""The scheduling room: requests over time through an engine's iterations. Time is whole picoseconds.

    workloads    request, arrivals, traffic with quantiles
    an engine    engine with policies, memory, cost, hardware; standstill
    a run        simulate: admission, routing, replica (one engine), Log; reference: the same one step at a time
    its metrics  metrics with gaps; search (max goodput), sweep (a grid)
    its picture  timeline, perfetto
    real engines runs (their recordings), calibrate (a fit), validate (beside them)
    known ends   experiments, cplan: outcomes that a formula or a publication fixes
"""
