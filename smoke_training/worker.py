"""Processes of a node: `torchrun ARGUMENTS`, which starts `rank FOLDER` for each of its ranks.

Each ends with the process that started it, so that a launcher that is killed outright leaves none behind.
On CPUs torchrun forks its ranks, so that a node imports PyTorch once instead of in every rank of every
attempt. CUDA cannot be used after a fork: there each rank is a new interpreter.
"""

import atexit
import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any

from smoke_training.names import FORKED
from smoke_training.runtime import heartbeat
from smoke_training.runtime.imports import large
from smoke_training.runtime.processes import die_with_parent

MODULES = {"torchrun": "torch.distributed.run", "rank": "smoke_training.rank"}
LATER = ("torch._dynamo", "torch.distributed.checkpoint")  # by every rank, when it needs them
PR_SET_NAME = 15  # linux/prctl.h
STARTS = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"
_spares: list[tuple[ForkProcess, Connection]] = []


class ForkedRank:
    """A rank, with what torchrun uses of `subprocess.Popen` (torch 2.13, `SubprocessContext`).

    torchrun's own (`start_method="fork"`) report the end of one only, and wait forever after `os._exit`.
    """

    def __init__(self, args: Sequence[str], env: Mapping[str, str], **options: Any) -> None:
        process, work = _spares.pop(0)
        self.wait: Callable[..., object] = process.join
        self.pid, self.poll = process.pid, lambda: process.exitcode
        try:
            work.send((args, env))
        except OSError:  # it was killed
            new = subprocess.Popen(args, env=env, **options)
            self.pid, self.wait, self.poll = new.pid, new.wait, new.poll


def _fork(count: int) -> None:
    """Fork all ranks of all attempts, which wait: later torchrun has threads, whose locks no fork frees."""
    for _ in range(count):
        work, theirs = Pipe()
        process = ForkProcess(target=_spare, args=(theirs,))
        process.start()
        os.setpgid(process.pid or 0, process.pid or 0)  # torchrun signals the group
        atexit.register(process.kill)
        _spares.append((process, work))


def _spare(work: Connection) -> None:
    die_with_parent()
    args, env = work.recv()
    os.environ.update(env, **{FORKED: "1"})
    ctypes.CDLL(None).prctl(PR_SET_NAME, f"rank {env['RANK']}".encode())  # `/proc` has torchrun's environment
    sys.argv[:] = args[-3:]  # the module, "rank", the folder
    main()


def main() -> None:
    """Run one of them."""
    die_with_parent()
    name = sys.argv.pop(1)
    heart = heartbeat.own() if name == "rank" else heartbeat.Heartbeat(None)
    heart.phase("start")
    if name == "torchrun" and (count := int(os.environ.pop(FORKED, 0))):
        with contextlib.suppress(Exception):  # then each rank meets it and reports it
            *_, starts = [large(module) for module in (MODULES["rank"], *LATER, STARTS)]
            _fork(count)
            starts.Popen = ForkedRank
    try:
        module = large(MODULES[name])
    except Exception as error:
        heart.broke(f"{type(error).__name__}: {error}")
        raise
    module.main()


if __name__ == "__main__":
    main()
