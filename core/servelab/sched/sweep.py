"""Many runs of one grid: rates × schedulers × budgets, in this process's pool or on a Dask cluster.

A point is plain data and a run a function of it, so any executor of concurrent.futures does; Dask offers one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from servelab.sched.arrivals import Traffic, generate
from servelab.sched.engine import Engine
from servelab.sched.metrics import Limits, summary
from servelab.sched.routing import ROUTERS
from servelab.sched.simulate import simulate


@dataclass(frozen=True, slots=True)
class Point:
    """One run: everything that decides its outcome."""

    traffic: Traffic
    engine: Engine
    seed: int = 0
    replicas: int = 1
    router: str = "round_robin"
    limits: Limits | None = None


def grid(point: Point, rates: Sequence[float], policies: Sequence[str], budgets: Sequence[int]) -> list[Point]:
    """`point` at every combination, the rate changing fastest."""
    return [
        replace(
            point,
            traffic=replace(point.traffic, rate=rate),
            engine=replace(point.engine, policy=policy, budget=budget, seqs=min(point.engine.seqs, budget)),
        )
        for policy, budget, rate in itertools.product(policies, budgets, rates)
    ]


def run(point: Point) -> dict[str, Any]:
    """The metrics of one point, and what it was."""
    work = generate(point.traffic, point.seed)
    log = simulate(work, point.engine, point.replicas, ROUTERS[point.router])
    about = {"rate": point.traffic.rate, "scheduler": point.engine.policy, "budget": point.engine.budget}
    return about | summary(log, point.limits)


def sweep(points: Sequence[Point], executor: Executor) -> Iterator[dict[str, Any]]:
    """Metrics point by point, in order, as they come."""
    for future in [executor.submit(run, point) for point in points]:
        yield future.result()


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor]:
    """An executor on the Dask scheduler at `address`, or on a cluster of this machine's cores.

    ValueError where Dask is not installed or nobody answers at the address.
    """
    try:
        dask: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise ValueError("dask is not installed; pip install 'servelab[dask]', or use --executor process") from error
    try:
        client = dask.Client(address, timeout="10s") if address else dask.Client(dashboard_address=None)
    except (OSError, TimeoutError) as error:
        raise ValueError(f"no Dask scheduler answers at {address}; start one, or leave --dask out") from error
    with client:
        yield client.get_executor()


def executor(name: str, address: str | None) -> AbstractContextManager[Executor]:
    """"process" (as many workers as cores) or "dask". ValueError for another name."""
    if name == "dask" or address:
        return dask_executor(address)
    if name != "process":
        raise ValueError(f"executor {name!r} is unknown; use process or dask")
    return ProcessPoolExecutor()
