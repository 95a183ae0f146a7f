"""Which adapters carried the gang's traffic: counters of every node around the collectives phase.

At the end of the phase a known amount of data is all-reduced with the counters read just around it, so that
the bytes that must have crossed the wires are known exactly, whatever the phase itself measured.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist

from smoke_training.evidence.links import NcclLog, NodeTraffic
from smoke_training.nccl import transport
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.network.pairs import nothing_between
from smoke_training.runtime import counters

OPERATIONS = 6
CPU_BYTES = 1 << 22
GPU_BYTES = 1 << 28
LOG = "nccl-"  # prefix of the NCCL log files in the scratch folder

Measure = Callable[[Context], Iterator[Line]]


def around(measure: Measure) -> Measure:
    """The same phase with `traffic` evidence at its end, and `nccl_log` evidence on accelerators."""

    def measured(context: Context) -> Iterator[Line]:
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
) -> Iterator[Line]:
    gang = context.gang
    if gang.world < 2:
        return
    speaker = gang.local_rank == 0
    size = GPU_BYTES if gang.cuda else CPU_BYTES
    buffer = torch.ones(size // 4, dtype=torch.float32, device=gang.device)
    dist.all_reduce(buffer)
    gang.barrier()
    read, segments, ports = counters.interfaces(), counters.tcp(), counters.ports()
    gang.barrier()  # nobody starts before everybody has read
    gang.sync()
    began = time.perf_counter()
    for _ in range(OPERATIONS):
        buffer.fill_(1.0)
        dist.all_reduce(buffer)
    gang.sync()
    seconds = time.perf_counter() - began
    gang.barrier()
    mine = _node(gang, (read, segments, ports)) if speaker else None
    nodes = sorted(
        (item for item in gang.gather(mine) if isinstance(item, NodeTraffic)), key=lambda item: item.node
    )
    moved = {name: value - before.get(name, 0) for name, value in after.items()}
    phase = [item for item in gang.gather((gang.node, moved) if speaker else None) if isinstance(item, tuple)]
    yield {
        "kind": "traffic",
        "operations": OPERATIONS,
        "size_bytes": size,
        "seconds": max(gang.maxima([seconds])),
        "backend": gang.backend,
        "nothing_between": nothing_between(gang, context.plan),
        "nodes": [asdict(item) for item in nodes],
        "phase_seconds": spent,
        "phase_tx_bytes": [counts for _, counts in sorted(phase, key=lambda item: int(item[0]))],
    }
    if gang.cuda:
        logs = gang.gather(_log(gang.node, context.scratch) if speaker else None)
        for item in logs:
            if isinstance(item, NcclLog):
                yield {"kind": "nccl_log", **asdict(item)}


Counted = tuple[dict[str, counters.Interface], counters.Tcp | None, dict[str, counters.Port]]


def _node(gang: Gang, before: Counted) -> NodeTraffic:
    read, segments, ports = counters.interfaces(), counters.tcp(), counters.ports()
    old_read, old_segments, old_ports = before
    known = segments is not None and old_segments is not None
    sent = {name: new.tx_bytes - old_read[name].tx_bytes for name, new in read.items() if name in old_read}
    received = {
        name: new.rx_bytes - old_read[name].rx_bytes for name, new in read.items() if name in old_read
    }
    return NodeTraffic(
        node=gang.node,
        tx_bytes=sent,
        rx_bytes=received,
        port_tx_bytes=_ports(old_ports, ports, "tx_bytes"),
        port_rx_bytes=_ports(old_ports, ports, "rx_bytes"),
        segments=_segments(old_segments, segments, "sent") if known else None,
        retransmitted=_segments(old_segments, segments, "retransmitted") if known else None,
        spurious=_segments(old_segments, segments, "spurious") if known else None,
        environment=transport.environment(os.environ),
    )


def _segments(old: counters.Tcp | None, new: counters.Tcp | None, name: str) -> int | None:
    before, after = getattr(old, name, None), getattr(new, name, None)
    return None if before is None or after is None else int(after) - int(before)


def _ports(old: Mapping[str, counters.Port], new: Mapping[str, counters.Port], name: str) -> dict[str, int]:
    found = {}
    for port, now in new.items():
        before, after = getattr(old.get(port), name, None), getattr(now, name)
        if before is not None and after is not None:
            found[port] = int(after) - int(before)
    return found


def _bytes() -> dict[str, int]:
    return {name: found.tx_bytes for name, found in counters.interfaces().items()}


def _log(node: int, scratch: Path) -> NcclLog:
    lines: list[str] = []
    for path in sorted(scratch.glob(f"{LOG}*.log")):
        lines += path.read_text(errors="replace").splitlines()
    facts = transport.read_log(lines)
    return NcclLog(
        node=node,
        networks=facts.networks,
        providers=facts.providers,
        adapters=facts.adapters,
        via=facts.via,
        nvls=facts.nvls,
        lines=facts.lines,
    )
