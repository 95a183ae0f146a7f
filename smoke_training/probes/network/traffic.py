"""Which adapters carried the traffic of all ranks: counters of every node around the collectives phase.

At the end of the phase a known amount of data is all-reduced with the counters read just around it, so that
the bytes that must have crossed the wires are known exactly, whatever the phase itself measured.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
import torch.distributed as dist

from smoke_training.evidence import Record
from smoke_training.evidence.links import NcclLog, NodeTraffic, Traffic
from smoke_training.nccl import transport
from smoke_training.probes.context import Context
from smoke_training.probes.group import Group
from smoke_training.probes.network.arena import nothing_between
from smoke_training.runtime import counters

OPERATIONS = 6
CPU_BYTES = 1 << 22
GPU_BYTES = 1 << 28
LOG = "nccl-"  # prefix of the NCCL log files in the scratch folder

Measure = Callable[[Context], Iterator[Record]]


def around(measure: Measure) -> Measure:
    """The same phase with `traffic` evidence at its end, and `nccl_log` evidence on accelerators."""

    def measured(context: Context) -> Iterator[Record]:
        before, began = _bytes(), time.monotonic()
        yield from measure(context)
        spent = time.monotonic() - began
        yield from _proof(context, before, _bytes(), spent)

    return measured


def log_settings(scratch: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Settings that make NCCL say what it chose, in files of its own, unless the user asked for other ones.

    `NCCL_DEBUG_FILE` takes %h and %p for host and process (NVIDIA NCCL user guide, "Environment Variables").
    """
    wanted = {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,GRAPH,NVLS,P2P,SHM,TUNING",
        "NCCL_DEBUG_FILE": str(scratch / f"{LOG}%h-%p.log"),
    }
    # A version line or warnings alone would prove nothing, so these two are overruled.
    silent = environment.get("NCCL_DEBUG", "VERSION").upper() in ("VERSION", "WARN")
    return wanted if silent else {key: value for key, value in wanted.items() if key not in environment}


def _proof(
    context: Context, before: Mapping[str, int], after: Mapping[str, int], spent: float
) -> Iterator[Record]:
    group = context.group
    if group.world < 2:
        return
    speaker = group.local_rank == 0
    size = GPU_BYTES if group.cuda else CPU_BYTES
    buffer = torch.ones(size // 4, dtype=torch.float32, device=group.device)
    dist.all_reduce(buffer)
    group.barrier()
    counted = Counted.now()
    group.barrier()  # no rank starts before all have read
    group.sync()
    began = time.perf_counter()
    for _ in range(OPERATIONS):
        buffer.fill_(1.0)
        dist.all_reduce(buffer)
    group.sync()
    seconds = time.perf_counter() - began
    group.barrier()
    moved = {name: value - before.get(name, 0) for name, value in after.items()}
    every = group.gather((_node(group, counted, Counted.now()), moved) if speaker else None)
    nodes = sorted((item for item in every if item is not None), key=lambda item: item[0].node)
    yield Traffic(
        operations=OPERATIONS,
        size_bytes=size,
        seconds=group.maxima([seconds])[0],
        backend=group.backend,
        nothing_between=nothing_between(group, context.plan),
        nodes=tuple(node for node, _ in nodes),
        phase_seconds=spent,
        phase_tx_bytes=tuple(sent for _, sent in nodes),
    )
    if group.cuda:
        logs = group.gather(_log(group.node, context.scratch) if speaker else None)
        yield from (log for log in logs if log is not None)


@dataclass(frozen=True)
class Counted:
    """Every counter of this node at one moment."""

    interfaces: Mapping[str, counters.Interface]
    tcp: counters.Tcp | None
    ports: Mapping[str, counters.Port]

    @classmethod
    def now(cls) -> Self:
        """Read them."""
        return cls(counters.interfaces(), counters.tcp(), counters.ports())


def _node(group: Group, before: Counted, after: Counted) -> NodeTraffic:
    return NodeTraffic(
        node=group.node,
        tx_bytes=_moved(before.interfaces, after.interfaces, "tx_bytes"),
        rx_bytes=_moved(before.interfaces, after.interfaces, "rx_bytes"),
        port_tx_bytes=_moved(before.ports, after.ports, "tx_bytes"),
        port_rx_bytes=_moved(before.ports, after.ports, "rx_bytes"),
        segments=_difference(before.tcp, after.tcp, "sent"),
        retransmitted=_difference(before.tcp, after.tcp, "retransmitted"),
        spurious=_difference(before.tcp, after.tcp, "spurious"),
        environment=transport.environment(os.environ),
    )


def _moved(before: Mapping[str, object], after: Mapping[str, object], counter: str) -> dict[str, int]:
    """What a counter of every adapter counted, where it is known."""
    found = {name: _difference(before.get(name), now, counter) for name, now in after.items()}
    return {name: value for name, value in found.items() if value is not None}


def _difference(before: object, after: object, counter: str) -> int | None:
    old, new = getattr(before, counter, None), getattr(after, counter, None)
    return None if old is None or new is None else int(new) - int(old)


def _bytes() -> dict[str, int]:
    return {name: found.tx_bytes for name, found in counters.interfaces().items()}


def _log(node: int, scratch: Path) -> NcclLog:
    lines: list[str] = []
    for path in sorted(scratch.glob(f"{LOG}*.log")):
        lines += path.read_text(errors="replace").splitlines()
    facts = transport.read_log(lines)
    return NcclLog(node=node, **vars(facts))
