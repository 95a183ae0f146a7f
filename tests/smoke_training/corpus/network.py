"""Networks of GPU clusters: published healthy ones, with and without a reference. One row, one cluster."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from smoke_training.model import Verdict
from smoke_training.nccl.log import read_log
from tests.smoke_training.corpus.clusters import Cluster

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
    Row(
        "H100, InfiniBand, 8 nodes with more channels",
        of("hgx-h100", "infiniband", 8, (8, 391.4), ports=8, environment={"NCCL_MIN_CTAS": "24"}),
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
    Row("GB300", of("p6e-gb300r.36xlarge", "nvlink", 8, (16, 923.3), gpus=4)),
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
