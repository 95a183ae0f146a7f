"""Count the traffic of every node's adapters around the collectives phase.

At the end of the phase a known amount of data is all-reduced with the counters read just around it, so that
the bytes that must have crossed the wires are known exactly, whatever the phase itself measured.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
import torch.distributed as dist

from smoke_training.evidence import Record
from smoke_training.evidence.links import NcclLog, NodeTraffic, Traffic
from smoke_training.nccl import transport
from smoke_training.nccl.log import read_log
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.network.arena import nothing_between
from smoke_training.runtime import counters

OPERATIONS = 6
CPU_BYTES = 1 << 22
GPU_BYTES = 1 << 28
LOG = "nccl-"  # prefix of the NCCL log files in the scratch folder

Measure = Callable[[ProbeContext], Iterator[Record]]


def around(measure: Measure) -> Measure:
    """The same phase with `traffic` evidence at its end, and `nccl_log` evidence on accelerators."""

    def measured(context: ProbeContext) -> Iterator[Record]:
        before, began = _counted(), time.monotonic()
        yield from measure(context)
        spent = time.monotonic() - began
        yield from _proof(context, since(before, _counted())["tx_bytes"], spent)

    return measured


def log_settings(scratch: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return settings that make NCCL log its choices to files, unless the user chose other ones.

    `NCCL_DEBUG_FILE` takes %h and %p for host and process (NVIDIA NCCL user guide, "Environment Variables").
    """
    wanted = {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,GRAPH,NVLS,P2P,SHM,TUNING",
        "NCCL_DEBUG_FILE": str(scratch / f"{LOG}%h-%p.log"),
    }
    # A version line or warnings alone would prove nothing, so these two are overridden.
    silent = environment.get("NCCL_DEBUG", "VERSION").upper() in ("VERSION", "WARN")
    return wanted if silent else {key: value for key, value in wanted.items() if key not in environment}


def _proof(context: ProbeContext, sent: Mapping[str, int], spent: float) -> Iterator[Record]:
    """The evidence; `sent` are the bytes by interface of this node during the phase."""
    group = context.group
    if group.world < 2:
        return
    speaker = group.local_rank == 0
    size = GPU_BYTES if group.cuda else CPU_BYTES
    buffer = torch.ones(size // 4, dtype=torch.float32, device=group.device)

    def reduce() -> None:
        for _ in range(OPERATIONS):
            buffer.fill_(1.0)
            dist.all_reduce(buffer)

    dist.all_reduce(buffer)
    group.barrier()
    before = _counted()
    group.barrier()  # no rank starts before all have read
    seconds = group.seconds(reduce)
    group.barrier()
    every = group.gather((_node(group.node, since(before, _counted())), sent) if speaker else None)
    nodes = sorted((item for item in every if item is not None), key=lambda item: item[0].node)
    yield Traffic(
        operations=OPERATIONS,
        size_bytes=size,
        seconds=group.maxima([seconds])[0],
        backend=group.backend,
        nothing_between=nothing_between(group, context.plan),
        nodes=tuple(node for node, _ in nodes),
        phase_seconds=spent,
        phase_tx_bytes=tuple(moved for _, moved in nodes),
    )
    if group.cuda:
        logs = group.gather(_log(group.node, context.scratch) if speaker else None)
        yield from (log for log in logs if log is not None)


Counted = Mapping[str, Mapping[str, int]]
"""Counts of this node: by interface or RDMA port under the names of `NodeTraffic`, of TCP under "tcp"."""


def _counted() -> Counted:
    interfaces, ports, tcp = counters.interfaces(), counters.ports(), counters.tcp()
    found: dict[str, Mapping[str, int | None]] = {
        "tx_bytes": {name: item.tx_bytes for name, item in interfaces.items()},
        "rx_bytes": {name: item.rx_bytes for name, item in interfaces.items()},
        "port_tx_bytes": {name: item.tx_bytes for name, item in ports.items()},
        "port_rx_bytes": {name: item.rx_bytes for name, item in ports.items()},
        "tcp": vars(tcp) if tcp else {},
    }
    return {kind: {k: v for k, v in values.items() if v is not None} for kind, values in found.items()}


def since(before: Counted, after: Counted) -> Counted:
    """Return the counts since `before`. New interfaces count from 0; what was reset in between is unknown."""
    return {
        kind: {k: n for k, value in values.items() if (n := value - before[kind].get(k, 0)) >= 0}
        for kind, values in after.items()
    }


def _node(node: int, moved: Counted) -> NodeTraffic:
    return NodeTraffic(
        node=node,
        tx_bytes=moved["tx_bytes"],
        rx_bytes=moved["rx_bytes"],
        port_tx_bytes=moved["port_tx_bytes"],
        port_rx_bytes=moved["port_rx_bytes"],
        segments=moved["tcp"].get("sent"),
        retransmitted=moved["tcp"].get("retransmitted"),
        spurious=moved["tcp"].get("spurious"),
        environment=transport.environment(os.environ),
        inactive=tuple(name for name, port in counters.ports().items() if port.active is False),
    )


def _log(node: int, scratch: Path) -> NcclLog:
    lines: list[str] = []
    for path in sorted(scratch.glob(f"{LOG}*.log")):
        lines += path.read_text(errors="replace").splitlines()
    return NcclLog(node=node, **vars(read_log(lines)))
