"""Waits for other ranks that Python code can see: in the step's `exposed_communication`.

`Work.wait` is in the way of FSDP2, of `torch.distributed.pipelining` and of a loop's own collectives;
`wait_tensor` in that of DTensor (tensor parallel). On CUDA they make the current stream wait, and so do two
methods of FSDP2's parameter groups, which include the copy of the gathered parameters (torch 2.13,
`distributed/fsdp/_fully_shard/_fsdp_param_group.py`; untested on hardware). Compiled code waits inside of its
graph, FSDP1 in streams: neither is seen.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from smoke_training.instrumentation.marks import CHECKPOINT, DATA, EXPOSED, DeviceMarks, HostMarks

_running: list["Waits"] = []
_replaced: list[tuple[Any, str, Any, Any]] = []  # owner, name, what was there, ours


class Waits:
    """Counts the waits of one loop and marks their time; `start` and `stop` in the loop's thread."""

    def __init__(self, marks: HostMarks | DeviceMarks) -> None:
        self.seen = 0
        self._marks = marks

    def start(self) -> None:
        """Begin to mark waits."""
        self._thread = (os.getpid(), threading.get_ident())
        if not _running:
            for owner, name in _places(isinstance(self._marks, DeviceMarks)):
                original = vars(owner)[name]
                setattr(owner, name, ours := _marked(getattr(owner, name)))
                _replaced.append((owner, name, original, ours))
        _running.append(self)

    def stop(self) -> None:
        """Stop; the last one leaves torch as it was."""
        if self in _running:
            _running.remove(self)
        while not _running and _replaced:
            owner, name, original, ours = _replaced.pop()
            if vars(owner).get(name) is ours:
                setattr(owner, name, original)

    def begin(self) -> int | None:
        """Begin a wait; return the section before, or None where the wait belongs to that section."""
        here = (os.getpid(), threading.get_ident()) == self._thread
        # Threads of the autograd engine are not made by Python; others (a checkpoint's) are not the step's.
        if not here and not isinstance(threading.current_thread(), threading._DummyThread):
            return None
        if self._marks.section in (DATA, CHECKPOINT):
            return None
        self.seen += 1
        return self._marks.enter(EXPOSED)

    def end(self, before: int | None) -> None:
        """End a wait."""
        if before is not None:
            self._marks.enter(before)


def _places(cuda: bool) -> Iterator[tuple[Any, str]]:
    """Yield what a loop can wait in: of modules that it has not imported, nothing."""
    if dist.is_available():
        yield dist.Work, "wait"
    if functional := sys.modules.get("torch.distributed._functional_collectives"):
        yield functional, "wait_tensor"
    sharding = sys.modules.get("torch.distributed.fsdp._fully_shard._fsdp_param_group")
    if cuda and sharding is not None:
        for name in ("wait_for_unshard", "finalize_backward"):
            if name in vars(sharding.FSDPParamGroup):
                yield sharding.FSDPParamGroup, name


def _marked(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(*arguments: Any, **options: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(*arguments, **options)
        waits = [(run, run.begin()) for run in tuple(_running)]
        try:
            return original(*arguments, **options)
        finally:
            for run, before in reversed(waits):
                run.end(before)

    return wait
