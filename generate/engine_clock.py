"""When the parts of an engine's step happen on the CPU and on the GPU, in seconds of one clock.

A step's wall time hides which of the two it waited for. So the runner's calls are timed, and CUDA events stand before
and behind the step's own work in the GPU's queue. `hold` puts a pause of the GPU in front of each step: its work is
queued as a whole before it begins, and what passes between the events is the GPU's time alone, however slow the CPU.
"""

from __future__ import annotations

import time
from typing import Any

MS = 2_000_000
"""Cycles of the GPU in about a millisecond."""


class Clock:
    """`marks` of the step at hand: [forward s, launched s] of the CPU and the events around its work."""

    def __init__(self, runner: Any) -> None:
        import torch

        self.cuda = torch.cuda
        self.marks: list[Any] = []
        self.hold = False
        self.zero, self.at = self._event(), time.perf_counter()
        execute, forward, sample = runner.execute_model, runner._model_forward, runner._sample

        def executing(out: Any, *args: Any, **named: Any) -> Any:
            if out.total_num_scheduled_tokens:
                if self.hold:
                    mixed = out.total_num_scheduled_tokens > len(out.num_scheduled_tokens)
                    self.cuda._sleep((16 if mixed else 8) * MS)
                self.marks.append(self._event())
            return execute(out, *args, **named)

        def forwarding(*args: Any, **named: Any) -> Any:
            self.marks.append(time.perf_counter())
            return forward(*args, **named)

        def sampling(*args: Any, **named: Any) -> Any:
            out = sample(*args, **named)
            self.marks += [self._event(), time.perf_counter()]
            return out

        runner.execute_model, runner._model_forward, runner._sample = executing, forwarding, sampling

    def _event(self) -> Any:
        event = self.cuda.Event(enable_timing=True)
        event.record()
        return event

    def start(self) -> None:
        """The two clocks side by side."""
        self.cuda.synchronize()
        self.zero, self.at = self._event(), time.perf_counter()
        self.cuda.synchronize()

    def read(self, marks: list[Any], start: float) -> list[float]:
        """[forward, launched, GPU began, GPU ended] in seconds since `start`; nothing of a step without work."""
        if not marks:
            return []
        begun, forward, ended, launched = marks
        self.cuda.synchronize()
        gpu = self.at - start + self.zero.elapsed_time(begun) / 1e3
        took = begun.elapsed_time(ended) / 1e3
        return [round(t, 6) for t in (forward - start, launched - start, gpu, gpu + took)]
