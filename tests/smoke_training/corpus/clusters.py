"""Evidence of GPU clusters, built from what a table says of them: a healthy one, and what deviates.

`Cluster` describes hardware and what NCCL reached there; `lines` is the evidence of its validation, as JSON
objects, for `judged`. Faults are other values of the same fields, or `extra` lines, which replace those of
the same kind. Durations have a spread of 1 %, with a fixed seed.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smoke_training import evidence, verdict
from smoke_training.formulae.bandwidth import COLLECTIVES, bus_factor
from smoke_training.model import Check, Judgement
from smoke_training.plan import Plan
from tests.smoke_training.samples import facts, hello, payloads, plan

GIB = 1 << 30
SENT = 6 * (64 << 20)  # bytes of the all-reduces whose traffic is counted
CHANNELS = {"efa": "NET/AWS Libfabric", "infiniband": "NET/IB", "rdma": "NET/IB", "tcp": "NET/Socket",
            "tcpx": "NET/GPUDirectTCPX_v7", "tcpxo": "NET/FasTrak", "nvlink": "P2P/MNNVL"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster: `busbw` is GB/s by collective and GiB; `ports` RDMA adapters of a node, `eth` GPU NICs."""

    machine: str
    fabric: str
    nodes: int
    busbw: Mapping[str, Mapping[float, float]]
    gpus: int = 8
    ports: int = 0
    eth: int = 0
    log: Mapping[str, Any] | None = field(default_factory=dict)  # changes of NCCL's log; None: no log
    algorithm: str | None = None  # NCCL's choice for the all-reduce, as "ring"
    sent: Mapping[str, int] = field(default_factory=dict)  # interface or port -> bytes, instead of its part
    inactive: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    phases: tuple[str, ...] = ("world", "collectives", "pairs")
    plan: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[Mapping[str, Any], ...] = ()


def plan_of(cluster: Cluster) -> Plan:
    """The plan of its validation: no rails, no declared figure, as stacks write it."""
    return plan(
        nodes=cluster.nodes, ranks_per_node=None, instance_type=cluster.machine, gpus_per_node=cluster.gpus,
        fabric=cluster.fabric, rails=[], phases=list(cluster.phases), **cluster.plan,
    )  # fmt: skip


def lines(cluster: Cluster) -> list[Mapping[str, Any]]:
    """The evidence of a whole run of these phases."""
    ranks, own = cluster.nodes * cluster.gpus, {line["kind"] for line in cluster.extra}
    found: list[Mapping[str, Any]] = [
        {"kind": "preflight", "device": "cuda", "devices_found": cluster.gpus, "device_forced": False,
         "ranks": cluster.gpus},
        hello(*(_facts(cluster, node) for node in range(cluster.nodes)), wanted=cluster.nodes),
        {"kind": "world", "wanted": ranks, "ranks": [_rank(cluster, rank) for rank in range(ranks)]},
        {"kind": "liveness", "watched_s": 90.0, "looks": 900, "hang_timeout_s": 60.0, "ranks": [
            {"rank": rank, "node": rank // cluster.gpus, "status": "DONE", "phase": "pairs", "attempt": 0,
             "sequence": 90, "beats": 300, "longest_idle_s": 1.5} for rank in range(ranks)]},
        _traffic(cluster),
        *(_log(cluster, node) for node in range(cluster.nodes) if cluster.log is not None),
        *(_sweep(cluster, name) for name in COLLECTIVES),
        *payloads(),
        {"kind": "pairs_skipped", "reason": "left out of this evidence"},
        {"kind": "finished"},
    ]  # fmt: skip
    return [line for line in found if line["kind"] not in own] + list(cluster.extra)


def judged(cluster: Cluster) -> Judgement:
    """The whole verdict."""
    return verdict.judge(plan_of(cluster), evidence.parse(json.dumps(line) for line in lines(cluster)))


def check_of(found: Judgement, name: str) -> Check:
    """One check of a verdict."""
    return next(check for check in found.checks if check.id == name)


def _facts(cluster: Cluster, node: int) -> dict[str, Any]:
    return facts(
        node, ranks=cluster.gpus, device="cuda", device_forced=False, gpus=cluster.gpus, cpus=96,
        driver="580.95", plan_nodes=cluster.nodes, plan_ranks_per_node=None,
        rdma=[f"mlx5_{index}" for index in range(cluster.ports)],
    )  # fmt: skip


def _rank(cluster: Cluster, rank: int) -> dict[str, Any]:
    return {"rank": rank, "node": rank // cluster.gpus, "host": f"smoke-ab-{rank // cluster.gpus}",
            "pid": 10 + rank, "device": "cuda", "backend": "nccl", "python": "3.11.7", "torch": "2.9.1",
            "kernel": "6.8", "cpus": 12, "nccl": "2.27.7", "gpu_memory_bytes": 80 << 30}  # fmt: skip


def _names(cluster: Cluster) -> list[str]:
    return [f"mlx5_{index}/1" for index in range(cluster.ports)]


def _traffic(cluster: Cluster) -> dict[str, Any]:
    part = SENT * 2 // max(1, cluster.ports)
    port_bytes = dict.fromkeys(_names(cluster), part) | {k: v for k, v in cluster.sent.items() if "/" in k}
    eth = {f"eth{index}": SENT // 2 for index in range(1, cluster.eth + 1)}
    if cluster.fabric == "tcpxo":
        eth = dict.fromkeys(eth, 9_000)
    first = SENT * 2 if cluster.fabric == "tcp" else 43_000
    tx = {"lo": 9, "eth0": first, **eth, **{k: v for k, v in cluster.sent.items() if "/" not in k}}
    node = {"tx_bytes": tx, "rx_bytes": tx, "port_tx_bytes": port_bytes, "port_rx_bytes": port_bytes,
            "segments": 1000, "retransmitted": 0, "spurious": 0, "environment": dict(cluster.environment),
            "inactive": list(cluster.inactive)}  # fmt: skip
    return {"kind": "traffic", "operations": 6, "size_bytes": 64 << 20, "seconds": 0.4, "backend": "nccl",
            "nodes": [{"node": index, **node} for index in range(cluster.nodes)], "phase_seconds": 5.0,
            "nothing_between": None, "phase_tx_bytes": [{}] * cluster.nodes}  # fmt: skip


def _log(cluster: Cluster, node: int) -> dict[str, Any]:
    name, link = CHANNELS[cluster.fabric], {"infiniband": "IB", "rdma": "RoCE"}.get(cluster.fabric)
    network = {"NET/IB": "IB", "P2P/MNNVL": "IB"}.get(name, name.removeprefix("NET/"))
    direct = cluster.fabric in ("efa", "infiniband", "rdma")
    return {
        "kind": "nccl_log", "node": node, "networks": [network], "lines": 900, "nvls": cluster.gpus >= 8,
        "providers": ["efa"] if cluster.fabric == "efa" else [], "adapters": cluster.ports or None,
        "via": {name: 32}, "direct": {name: 32} if direct else {},
        "ports": dict.fromkeys(_names(cluster), link) if link else {},
        "used": _names(cluster) if link else [],
        "mnnvl": cluster.fabric == "nvlink", **(cluster.log or {}),
    }  # fmt: skip


def _sweep(cluster: Cluster, name: str) -> dict[str, Any]:
    """GB/s of the table, and a tenth of it for sizes that it leaves out."""
    known = cluster.busbw.get(name, {})
    rates = {4 << 20: 20.0, **{int(size * GIB): rate for size, rate in known.items()}}
    ranks, dice = cluster.nodes * cluster.gpus, random.Random(f"{cluster.machine} {name}")
    factor = bus_factor(name, ranks) or 1.0
    seconds = [
        [size * factor / rate / 1e9 * dice.lognormvariate(0, 0.01) for _ in range(25)]
        for size, rate in rates.items()
    ]
    chosen = cluster.algorithm if name == "all_reduce" else None
    return {"kind": "collective", "name": name, "sizes": list(rates), "seconds": seconds,
            "algorithms": {str(size): f"{chosen}/simple" for size in rates} if chosen else {},
            "queue_share": 0.0, "steal_share": 0.0}  # fmt: skip
