"""Networks of GPU clusters: published healthy ones, and what is known to go wrong. One row, one cluster.

A degraded cluster is FAIL where the fault is proven, INCONCLUSIVE where what is seen may have another reason.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from smoke_training.model import Verdict
from smoke_training.nccl.log import read_log
from tests.smoke_training.corpus.clusters import SENT, Cluster

PASS, FAIL, OPEN = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


@dataclass(frozen=True)
class Row:
    """A cluster, the verdict that it must get, and the check that decides, with a word that it must say.

    `why` is the reason that no fault is proven, for degraded clusters that are INCONCLUSIVE.
    """

    name: str
    cluster: Cluster
    verdict: Verdict = PASS
    check: str = ""
    says: str = ""
    why: str = ""


def of(machine: str, fabric: str, nodes: int, *rates: tuple[float, float], **more: object) -> Cluster:
    """A cluster by its all-reduces, (GiB, GB/s)."""
    return Cluster(machine=machine, fabric=fabric, nodes=nodes, busbw={"all_reduce": dict(rates)}, **more)  # type: ignore[arg-type]


def log_of(using: str, network: str, devices: int = 8) -> dict[str, Any]:
    """Facts of a log of NCCL, by its lines: the list of adapters, and a channel by each of the devices."""
    info = "node-0:1:9 [0] NCCL INFO"
    channel = f"{info} Channel 00/0 : 0[0] -> 8[0] [send] via NET/{network}"
    lines = [f"{info} NET/IB : Using {using} [RO]; OOB eth0:10.0.0.1<0>", f"{info} Using network {network}"]
    lines += [f"{channel}/{device}(3)/GDRDMA" for device in range(devices)]
    found = asdict(read_log(lines))
    return {name: found[name] for name in ("networks", "adapters", "ports", "used", "via", "direct")}


MERGED = " ".join(
    f"[{n}]={{[{2 * n}] mlx5_{2 * n}:1/RoCE, [{2 * n + 1}] mlx5_{2 * n + 1}:1/RoCE}}" for n in range(8)
)
NINE = " ".join(f"[{n}]mlx5_{n}:1/IB/SHARP" for n in range(9))  # the ninth is for storage
DATA_DIRECT = " ".join(f"[{n}]mlx5_{n}_dma:1/RoCE" for n in range(8))
P5 = {nodes: of("p5.48xlarge", "efa", nodes, (8, rate), ports=32)
      for nodes, rate in ((2, 477.7), (4, 357.0), (8, 355.4), (16, 356.3), (32, 321.1))}  # fmt: skip
IB = of("hgx-h100", "infiniband", 2, (1, 448.9), (8, 468.5), (16, 469.2), ports=8, algorithm="nvls_tree")
IB8 = of("Standard_ND96isr_H100_v5", "infiniband", 8, (8, 391.4), ports=8, algorithm="ring")
SHARP = replace(
    IB8,
    busbw={"all_reduce": {8: 440.0, 16: 452.0}},
    algorithm="collnet_direct",
    log={"collnet": True},
    environment={"NCCL_COLLNET_ENABLE": "1"},
)
ROCE = of("BM.GPU.H100.8", "rdma", 2, (1, 446.3), (8, 463.9), (16, 464.6), ports=16)
ULTRA = of("a3-ultragpu-8g", "rdma", 2, (1, 450.0), (8, 466.0), ports=8)
HIGH = of("a3-highgpu-8g", "tcpx", 2, (0.5, 70.0), (1, 70.0), (2, 72.0), eth=4, log={"nvls": False})
MEGA = of("a3-megagpu-8g", "tcpxo", 2, (1, 306.2), (8, 338.8), (16, 337.1), eth=8, log={"nvls": False})
A100 = of("Standard_ND96amsr_A100_v4", "infiniband", 2, (2, 184.3), (8, 187.2), ports=8, log={"nvls": False})
RACK = of("gb200-nvl72", "nvlink", 18, (4, 839.2), (8, 834.6), gpus=4)
RING = {"NCCL_ALGO": "Ring"}
STORAGE = {"mlx5_storage/1": 10}
B300 = of("BM.GPU.B300.8", "rdma", 2, (16, 766.8), ports=8)
HPCX = replace(IB, ports=9, sent={"mlx5_8/1": 0}, log=log_of(NINE, "IBext_v8"))

HEALTHY = (
    *(Row(f"p5 over {nodes} nodes", cluster) for nodes, cluster in P5.items()),
    Row("p5 over 64 nodes, no figure", of("p5.48xlarge", "efa", 64, (32, 310.0), ports=32)),
    Row("p4d", of("p4d.24xlarge", "efa", 2, (1, 76.1), (2, 77.9), ports=4, log={"nvls": False})),
    Row("p5en over 2 nodes, no figure", of("p5en.48xlarge", "efa", 2, (16, 482.0), ports=16)),
    Row("p6-b200", of("p6-b200.48xlarge", "efa", 4, (16, 381.8), ports=8)),
    Row("p6-b300", of("p6-b300.48xlarge", "efa", 2, (16, 654.0), ports=16)),
    Row("one node of H100", of("hgx-h100", "infiniband", 1, (16, 479.9), ports=8, algorithm="nvls")),
    Row("H100, InfiniBand", IB),
    Row(
        "p5, a setting of SHARP that has no effect on EFA",
        replace(P5[2], environment={"NCCL_COLLNET_ENABLE": "1"}),
    ),
    Row("H100, InfiniBand, 4 nodes", of("hgx-h100", "infiniband", 4, (8, 330.9), ports=8)),
    Row("H100, InfiniBand, 8 nodes, tuned", IB8),
    Row(
        "H100, InfiniBand, 8 nodes, NCCL's defaults",
        of("hgx-h100", "infiniband", 8, (1, 286.8), (8, 320.7), ports=8),
    ),
    Row("H100, InfiniBand with SHARP", SHARP),
    Row("H200, InfiniBand", of("Standard_ND96isr_H200_v5", "infiniband", 2, (16, 485.7), ports=8)),
    Row("B200, InfiniBand", of("hgx-b200", "infiniband", 2, (1, 677.4), (2, 696.1), ports=8)),
    Row("A100, InfiniBand", A100),
    Row("A100, RoCE", of("BM.GPU.B4.8", "rdma", 2, (8, 189.6), ports=16, log={"nvls": False})),
    Row("H100, RoCE", ROCE),
    Row(
        "H100, RoCE, ports merged and named", replace(ROCE, log={"used": [f"mlx5_{n}/1" for n in range(16)]})
    ),
    Row("a3-ultra, an idle storage port that no channel uses", replace(ULTRA, sent=STORAGE)),
    Row("a4", of("a4-highgpu-8g", "rdma", 2, (1, 623.3), (8, 683.5), ports=8)),
    Row("B300, RoCE", B300),
    Row("B300, Data Direct devices", replace(B300, log=log_of(DATA_DIRECT, "IB"))),
    Row("H100, RoCE, merged by NCCL 2.20 to 2.23", replace(ROCE, log=log_of(MERGED, "IB"))),
    Row("H100, RoCE, merged by HPC-X's plugin", replace(ROCE, log=log_of(MERGED, "IBext_v8"))),
    Row("H100, InfiniBand by HPC-X's plugin, a storage port", HPCX),
    Row("a3-high, interfaces of the GPUs visible", HIGH),
    Row("a3-high, interfaces not visible", replace(HIGH, eth=0)),
    Row("a3-mega, interfaces of the GPUs visible", MEGA),
    Row("a3-mega, interfaces not visible", replace(MEGA, eth=0)),
    Row("GB200, one rack", RACK),
    Row("GB300", of("p6e-gb300.36xlarge", "nvlink", 8, (16, 923.3), gpus=4)),
)
# Healthy, and nothing known to hold them against: undecided, by name, never a fault.
WITHOUT_REFERENCE = tuple(
    Row(name, cluster, OPEN, "collective.all_reduce", "no_reference")
    for name, cluster in (
        ("a2: A100 without RDMA", of("a2-highgpu-8g", "tcp", 2, (1, 8.3), log={"nvls": False})),
        ("g6: L4 without RDMA", of("g6.48xlarge", "tcp", 2, (1, 6.1), log={"nvls": False})),
        ("g2: L4 on Google Cloud", of("g2-standard-96", "tcp", 4, (1, 6.0), log={"nvls": False})),
        ("a3-high over 8 nodes", of("a3-highgpu-8g", "tcpx", 8, (1, 60.0), eth=4, log={"nvls": False})),
        ("a machine of one's own", of("our-h100", "infiniband", 2, (16, 470.0), ports=8)),
    )
)
BUS, WAY = "collective.all_reduce", "fabric.transport"
SOCKET = {"networks": ["Socket"], "via": {"NET/Socket": 8}, "direct": {}}
DEGRADED = (
    Row(
        "EFA fell back to sockets",
        replace(P5[2], log=SOCKET, ports=0, sent={"eth0": SENT * 2}),
        FAIL,
        WAY,
        "Socket",
    ),
    Row("EFA: half of the adapters", replace(P5[2], ports=16), FAIL, WAY, "16 adapters"),
    Row("EFA: a dead adapter", replace(P5[2], sent={"mlx5_3/1": 0}), FAIL, WAY, "mlx5_3"),
    Row("EFA without GPUDirect RDMA", replace(P5[2], log={"direct": {}}), FAIL, WAY, "GPUDirect"),
    Row(
        "p4d, one of four adapters",
        of("p4d.24xlarge", "efa", 2, (2, 20.3), ports=4),
        FAIL,
        BUS,
        "one of four",
    ),
    Row(
        "p5, 4 nodes at half rate",
        of("p5.48xlarge", "efa", 4, (8, 178.0), ports=32),
        FAIL,
        BUS,
        "aws-gpu-communication",
    ),
    Row("PCIe ACS, 1 GiB", of("hgx-h100", "rdma", 2, (1, 216.5), ports=8), FAIL, BUS, "ACS"),
    Row("PCIe ACS, 8 GiB", of("a3-ultragpu-8g", "rdma", 2, (8, 231.0), ports=8), FAIL, BUS, "ACS"),
    Row(
        "data split on queue pairs",
        of("hgx-h100", "rdma", 2, (1, 358.0), ports=8),
        OPEN,
        BUS,
        "SPLIT_DATA",
        why="0.80 of the lowest healthy figure: sources of one cell differ by as much (0.77)",
    ),
    Row(
        "GPUDirect off",
        of("hgx-h100", "rdma", 2, (1, 72.1), ports=8, log={"direct": {}}),
        FAIL,
        WAY,
        "GPUDirect",
    ),
    Row("NVLS off, beside ACS", of("hgx-h100", "rdma", 2, (1, 112.3), ports=8), FAIL, BUS, "NVLS"),
    Row(
        "NVLS lost in one node",
        of("hgx-h100", "rdma", 1, (16, 367.2), ports=8, algorithm="ring"),
        FAIL,
        BUS,
        "not NVLS",
    ),
    Row(
        "a ring in one node by a setting",
        of("hgx-h100", "rdma", 1, (16, 367.2), ports=8, algorithm="ring", environment=RING),
        OPEN,
        BUS,
        "ring",
        why="the user asked for a ring; what the hardware does without the setting was not measured",
    ),
    Row(
        "NVLS lost over two nodes",
        replace(IB, busbw={"all_reduce": {16: 392.7}}, algorithm="ring"),
        FAIL,
        BUS,
        "NVLS",
    ),
    Row(
        "a ring over two nodes by a setting",
        replace(IB, busbw={"all_reduce": {16: 392.7}}, algorithm="ring", environment=RING),
        OPEN,
        BUS,
        "NVLS",
        why="NVIDIA recommends a ring to measure the network of two nodes (NVIDIA/nccl-tests#290, #309)",
    ),
    Row(
        "NVLS lost, by the log alone",
        replace(IB, algorithm=None, log={"nvls": False}),
        OPEN,
        BUS,
        "NVLS",
        why="log and rate contradict each other: no ring is as fast, so a part of the log may be missing",
    ),
    Row(
        "NVLS lost, a type without figures",
        of("p5en.48xlarge", "efa", 2, (16, 300.0), ports=16, algorithm="ring"),
        OPEN,
        BUS,
        "NVLS",
        why="no figure of two such nodes is published, and the derived one is provisional",
    ),
    *(
        Row(f"{name} at a ring's rate", of(machine, fabric, 2, rate, ports=8), FAIL, BUS, "a ring")
        for name, machine, fabric, rate in (
            ("B200 pair, 2 GiB,", "hgx-b200", "infiniband", (2, 385.0)),
            ("B200 pair, 8 GiB,", "a4-highgpu-8g", "rdma", (8, 385.0)),
        )
    ),
    Row(
        "B200 pair at a ring's rate by a setting",
        of("hgx-b200", "infiniband", 2, (2, 385.0), ports=8, environment=RING),
        OPEN,
        BUS,
        "a ring",
        why="the user asked for a ring, and this is a healthy one's rate (NVIDIA/nccl-tests#290, #309)",
    ),
    *(
        Row(
            f"{name} at a ring's rate",
            of(machine, fabric, nodes, rate, ports=8),
            OPEN,
            BUS,
            "a ring",
            why="0.75 to 0.83 of the healthy figure, and no log says by which algorithm",
        )
        for name, machine, fabric, nodes, rate in (
            ("H100 pair", "hgx-h100", "infiniband", 2, (8, 365.0)),
            ("one node of H100", "hgx-h100", "infiniband", 1, (8, 360.0)),
            ("one p5", "p5.48xlarge", "efa", 1, (16, 365.0)),
            ("one node of B200", "p6-b200.48xlarge", "efa", 1, (16, 660.0)),
        )
    ),
    Row(
        "B200 pair, by NVLSTree",
        of("hgx-b200", "infiniband", 2, (2, 385.0), ports=8, algorithm="nvls_tree"),
        FAIL,
        BUS,
        "dstack",
    ),
    Row("B200 pair below a ring's rate", of("hgx-b200", "infiniband", 2, (2, 300.0), ports=8), FAIL, BUS),
    Row(
        "p5 pair at two thirds",
        of("p5.48xlarge", "efa", 2, (1, 300.0), ports=32),
        OPEN,
        BUS,
        why="0.69 of the lowest figure at 1 GiB: AWS's own page has 313 of NCCL 2.18.5",
    ),
    Row(
        "SHARP asked for, not in use",
        replace(SHARP, log={}, algorithm="ring"),
        OPEN,
        WAY,
        "SHARP",
        why="the setting only allows SHARP; switches may have none, and a ring is as fast as it should be",
    ),
    Row(
        "SHARP in use and slow",
        replace(SHARP, busbw={"all_reduce": {16: 390.0}}),
        OPEN,
        BUS,
        "SHARP enabled",
        why="0.87 of the only figure, of which its source says about: within what sources differ",
    ),
    Row("a3-high over sockets", replace(HIGH, log=SOCKET, sent={"eth0": SENT * 2}), FAIL, WAY, "Socket"),
    Row(
        "a3-high, plugin there, bytes elsewhere",
        replace(HIGH, sent={"eth0": SENT * 2, **{f"eth{n}": 9 for n in range(1, 5)}}),
        FAIL,
        WAY,
        "eth0",
    ),
    Row(
        "a3-mega over sockets",
        replace(MEGA, busbw={"all_reduce": {16: 4.0}}, log=SOCKET, sent={"eth0": SENT * 2}),
        FAIL,
        WAY,
        "Socket",
    ),
    Row(
        "a3-high, neither log nor interfaces",
        replace(HIGH, log=None, eth=0),
        OPEN,
        WAY,
        "no NCCL log",
        why="nothing that was recorded says which way the bytes went",
    ),
    Row(
        "a3-mega, no log",
        replace(MEGA, log=None),
        OPEN,
        WAY,
        "no NCCL log",
        why="nothing that was recorded says which way the bytes went",
    ),
    Row(
        "RoCE, ports merged, one idle",
        replace(ULTRA, log={"used": []}, sent={"mlx5_5/1": 10}),
        OPEN,
        WAY,
        "NCCL_IB_HCA",
        why="the port may serve storage: NCCL lists it, and no channel names its device",
    ),
    Row(
        "InfiniBand, a port went down",
        replace(IB, sent={"mlx5_5/1": 0}, inactive=("mlx5_5/1",)),
        FAIL,
        WAY,
        "mlx5_5",
    ),
    Row(
        "HPC-X's plugin, an idle port, no channel named",
        replace(HPCX, log=log_of(NINE, "IBext_v8", 0)),
        OPEN,
        WAY,
        "NCCL_IB_HCA",
        why="the port may serve storage: NCCL lists it, and no channel names its device",
    ),
    Row(
        "HPC-X's plugin, a dead port",
        replace(HPCX, sent={"mlx5_8/1": 0, "mlx5_3/1": 0}),
        FAIL,
        WAY,
        "mlx5_3",
    ),
    Row(
        "Data Direct, a dead port",
        replace(B300, sent={"mlx5_3/1": 0}, log=log_of(DATA_DIRECT, "IB")),
        FAIL,
        WAY,
        "mlx5_3",
    ),
    Row("InfiniBand, seven ports", replace(IB, ports=7), FAIL, WAY, "7 adapters"),
    Row(
        "A100 below Azure's own limit", replace(A100, busbw={"all_reduce": {8: 110.0}}), FAIL, BUS, "aks-rdma"
    ),
    Row("GB200 without IMEX", replace(RACK, log={"mnnvl": False}), FAIL, WAY, "MNNVL"),
    Row(
        "GB200, NVLink at half rate", replace(RACK, busbw={"all_reduce": {8: 417.0}}), FAIL, BUS, "coreweave"
    ),
)
ROWS = (*HEALTHY, *WITHOUT_REFERENCE, *DEGRADED)
