"""Rows of public outputs of many shapes: measurement columns as published, hosts renamed, rows left out."""

import json
from dataclasses import dataclass

OLD = "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n"
ROOTED = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"


def ranks(*hosts: str, device: str = "NVIDIA H100 80GB HBM3", each: int = 1) -> str:
    places = [(host, local) for host in hosts for local in range(each)]
    return "".join(
        f"#  Rank {n:2} Group  0 Pid {100 + n} on {host:>10} device {local:2} [0x{local:02x}] {device}\n"
        for n, (host, local) in enumerate(places)
    )


def output(name: str, rates: dict[int, float], *hosts: str, device: str = "NVIDIA H100 80GB HBM3") -> str:
    """A whole output of nodes of 8 GPUs: busbw in GB/s by size in bytes; without sizes it hangs."""
    count = 8 * len(hosts)
    factor = {"all_reduce": 2 * (count - 1) / count}.get(name, 1.0)
    text = f"# Collective test starting: {name}_perf\n# nThread 1 nGpus 1 minBytes 8 maxBytes {max(rates, default=1 << 34)} step: 2(factor)\n"
    text += ranks(*hosts, device=device, each=8) + ROOTED
    for size, rate in rates.items():
        column = f"{size * factor / rate / 1e3:.2f} {rate / factor:.2f} {rate:.2f} 0"
        kind = "sum -1" if name == "all_reduce" else "none 0"
        text += f" {size} {size // 4} float {kind} {column} {column}\n"
    return text + "# Avg bus bandwidth    : 100\n" * bool(rates)


@dataclass(frozen=True)
class Shape:
    """A text, where it is published, the collective that it is of, and how many rows it has."""

    source: str
    text: str
    collective: str
    rows: int
    nodes: int | None = None
    ranks: int | None = None


SHAPES = [
    Shape(
        "eth-cscs documentation, Sarus Suite on Alps: version 2.18.2, one GPU a node",
        "# Collective test starting: all_reduce_perf\n" + ranks("node-a", "node-b", device="NVIDIA GH200 120GB") + ROOTED
        + "    16777216       4194304     float     sum      -1   840.36   19.96   19.96       0   841.25   19.94   19.94       0\n"
        "    33554432       8388608     float     sum      -1  1537.62   21.82   21.82       0  1538.74   21.81   21.81       0\n",
        "all_reduce", 2, ranks=2,
    ),
    Shape(
        "oracle-japan/ocitutorials, NCCL Tests on BM.GPU4.8: one size, 10 GiB in decimal",
        ranks("node-a", "node-b", device="NVIDIA A100-SXM4-40GB", each=8) + ROOTED
        + " 10737418240    2684354560     float     sum      -1    90330  118.87  222.88      0    91945  116.78  218.96      0\n"
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 220.921 \n",
        "all_reduce", 1, ranks=16,
    ),
    Shape(
        "Azure azcluster runbook, ND H100 v5: lines of ranks abbreviated",
        "# Collective test starting: all_reduce_perf\n#  Rank  0 .. Rank  7 on node-a  NVIDIA H100 80GB HBM3\n"
        "#  Rank  8 .. Rank 15 on node-b  NVIDIA H100 80GB HBM3\n"
        "  1073741824     268435456     float     sum      -1  4531.91  236.93  444.24       0  4537.36  236.64  443.71       0\n"
        " 17179869184    4294967296     float     sum      -1  69076.8  248.71  466.33       0  68981.5  249.05  466.97       0\n",
        "all_reduce", 2, ranks=16,
    ),
    Shape(
        "Oracle OCI BM.GPU.B300.8 page: no line of ranks, smaller sizes left out",
        "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 8 minBytes 524288 maxBytes 8589934592\n" + ROOTED
        + "# <smaller message sizes truncated>\n"
        " 8589934592    2147483648     float     sum      -1    18006  477.05  834.84      0    17990  477.49  835.61      0\n"
        "# Avg bus bandwidth    : 440.608\n",
        "all_reduce", 1, nodes=1, ranks=8,
    ),
    Shape(
        "nccl-eBPF report, RTX 5090: broadcast_perf_mpi, root 0, both ranks on one host",
        "# Collective test starting: broadcast_perf_mpi\n"
        "#  Rank  0 Group  0 Pid 23213 on lab device 0 [0000:02:00] NVIDIA GeForce RTX 5090\n"
        "#  Rank  1 Group  0 Pid 23214 on lab device 0 [0000:02:00] NVIDIA GeForce RTX 5090\n" + ROOTED
        + "       32768       8192   float    none       0    37.46    0.87    0.87       0   133.79    0.24    0.24       0\n"
        "      131072      32768   float    none       0  1863.39    0.07    0.07       0   488.07    0.27    0.27       0\n",
        "broadcast", 2, nodes=2, ranks=2,
    ),
    Shape(
        "DGX Spark notes: all_gather_perf 2.18.3 on GB10, one GPU a node",
        "# Collective test starting: all_gather_perf\n" + ranks("node-a", "node-b", device="NVIDIA GB10") + ROOTED
        + "  1073741824     134217728     float    none      -1  27211.0   39.46   19.73       0  25806.7   41.61   20.80       0\n"
        "  2147483648     268435456     float    none      -1  50573.4   42.46   21.23       0  48690.4   44.10   22.05       0\n",
        "all_gather", 2, ranks=2,
    ),
    Shape(
        "microsoft/superbenchmark test data: reduce_perf, old columns with root, sizes of 0",
        "#   Rank  0 Pid 112476 on localhost device  0 [0x00] A100-SXM4-40GB\n"
        "#   Rank  1 Pid 112476 on localhost device  1 [0x00] A100-SXM4-40GB\n"
        "#       size         count    type   redop    root     time   algbw   busbw  error     time   algbw   busbw  error\n"
        "           0             0   float     sum       0    36.90    0.00    0.00    N/A    36.47    0.00    0.00    N/A\n"
        "           4             1   float     sum       0    35.40    0.00    0.00    N/A    35.59    0.00    0.00    N/A\n",
        "reduce", 1, ranks=2,
    ),
    Shape(
        "Orlando, two GTX 1080: reduce_perf, error 0e+00",
        "#   Rank  0 Pid  13003 on    node-a device  0 [0x45] GeForce GTX 1080\n"
        "#   Rank  1 Pid  13003 on    node-a device  1 [0xc4] GeForce GTX 1080\n" + ROOTED
        + "    33554432       8388608   float     sum       0    22029    1.52    1.52  0e+00    21946    1.53    1.53  0e+00\n"
        "   134217728      33554432   float     sum       0    87680    1.53    1.53  0e+00    90443    1.48    1.48  0e+00\n",
        "reduce", 2, ranks=2,
    ),
    Shape(
        "model of costs of collectives: bfloat16, rows alone in a string of a program",
        "get_bws(data='''    268435456     134217728  bfloat16     sum      -1   1090.5  246.16  430.79      0   1089.8  246.31  431.04      0\n"
        "  8589934592    4294967296  bfloat16     sum      -1    31450  273.13  477.98      0    31436  273.26  478.20      0''', ranks = 8)\n",
        "all_reduce", 2, nodes=1, ranks=8,
    ),
    Shape(
        "the same: bfloat16 all-gather, recognised by the number of elements",
        "     8388608        524288  bfloat16    none      -1    48.87  171.67  150.21      0    49.08  170.90  149.54      0\n"
        "   134217728       8388608  bfloat16    none      -1    386.4  347.34  303.92      0    384.5  349.08  305.45      0\n",
        "all_gather", 2, nodes=1, ranks=8,
    ),
    Shape(
        "notes of 230 nodes on Kubernetes: one size in six cycles, 1840 ranks by NCCL's log",
        " 17179869184    8589934592  bfloat16     sum      -1    92222  186.29  372.37      0    91786  187.17  374.14      0\n"
        " 17179869184    8589934592  bfloat16     sum      -1    91276  188.22  376.23      0    91596  187.56  374.92      0\n"
        " 17179869184    8589934592  bfloat16     sum      -1    92613  185.50  370.80      0    91414  187.94  375.67      0\n"
        "node-a:3893168:3901944 [0] NCCL INFO comm 0x564ba32305f0 rank 0 nranks 1840 cudaDev 0 busId 19000 - Destroy COMPLETE\n",
        "all_reduce", 3, nodes=230, ranks=1840,
    ),
    Shape(
        "NVIDIA/nccl-tests#314, H20: all-to-all, N/A in place, no name of the test",
        ranks("node-a", device="NVIDIA H20-3e", each=8) + ROOTED
        + "     2097152         65536     float    none      -1    58.94   35.58   31.14      0    58.10   36.10   31.58    N/A\n"
        "     4194304        131072     float    none      -1    59.35   70.67   61.84      0    59.23   70.81   61.96    N/A\n",
        "all_to_all", 2, ranks=8,
    ),
    Shape(
        "NVIDIA/nccl-tests#78: 256 V100, old columns, N/A",
        OLD + "   134217728      33554432   float     sum   4263.8   31.48   62.71    N/A   4647.4   28.88   57.53    N/A\n"
        "  1073741824     268435456   float     sum    29896   35.92   71.55    N/A    29411   36.51   72.73    N/A\n",
        "all_reduce", 2, nodes=16, ranks=256,
    ),
    Shape(
        "aws/aws-ofi-nccl#33, p3dn: old columns, errors of rounding",
        OLD + "     2097152        524288   float     sum    671.4    3.12    5.86  5e-07    671.8    3.12    5.85  5e-07\n"
        "     4194304       1048576   float     sum   1140.5    3.68    6.90  5e-07   1144.3    3.67    6.87  5e-07\n",
        "all_reduce", 2, nodes=2, ranks=16,
    ),
    Shape(
        "log of two GPUs in a container: indented, lines of NCCL between rows and total",
        "    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
        "    134217728      33554432     float     sum      -1    857.6  156.51  156.51      0    819.6  163.76  163.76      0\n"
        "    268435456      67108864     float     sum      -1   1445.2  185.74  185.74      0   1441.9  186.17  186.17      0\n"
        "    node-a:880:880 [1] NCCL INFO comm 0x55ba65abd9d0 rank 0 nranks 2 cudaDev 0 busId a4000 - Destroy COMPLETE\n"
        "    # Avg bus bandwidth    : 179.465 \n",
        "all_reduce", 2, nodes=1, ranks=2,
    ),
    Shape(
        "NVIDIA/nccl#1453, NCCL_DEBUG=INFO with mpirun: a row is cut by lines of NCCL and goes on after them",
        ROOTED + "[0]         8192          2048     float     sum      -1[0] node-a:497888:497888 [0] NCCL INFO 8192 Bytes -> Algo 0\n"
        "[0] node-a:497888:497888 [0] NCCL INFO 8192 Bytes -> Algo 0 proto 0 time 26.549810\n"
        "[0]     75.38    0.11    0.20      0    75.40    0.11    0.20      0\n",
        "all_reduce", 1, nodes=2, ranks=16,
    ),
    Shape(
        "the same: mpirun -prepend-rank of Intel MPI names the rank within rows, too",
        "".join(
            f"[0] {row.format('-1[0]', '0[0]')}\n" for row in (
                "     4194304       1048576     float     sum      {} 622.6    6.74   12.91      {}     625.8    6.70   12.85      0",
                "    33554432       8388608     float     sum      {} 2180.1   15.39   29.50      {}    2285.2   14.68   28.14      0",
            )
        ),
        "all_reduce", 2, nodes=3, ranks=24,
    ),
    Shape(
        "the log of a container of Docker: every line is JSON (figures of awsome-distributed-ai, aws-batch)",
        "".join(
            json.dumps({"log": row + "\n", "stream": "stdout", "time": "2026-02-21T00:00:00Z"}) + "\n" for row in (
                "# Collective test starting: all_reduce_perf",
                "  1073741824     268435456     float     sum      -1   4253.0  252.47  441.81      0   4255.4  252.33  441.57      0",
                " 17179869184    4294967296     float     sum      -1    62239  276.03  483.05      0    62200  276.20  483.35      0",
            )
        ),
        "all_reduce", 2, nodes=1, ranks=8,
    ),
    Shape(
        "NVIDIA/nccl-tests#78: all-to-all of old versions, whose errors in place are not counted",
        OLD + "   268435456       1048576     float           520935    0.52    0.51  0e+00   519562    0.52    0.51  1e+00\n"
        "   536870912       2097152     float          1041974    0.52    0.51  0e+00  1041299    0.52    0.51  1e+00\n"
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.507636 \n",
        "all_to_all", 2, nodes=8, ranks=64,
    ),
    Shape(
        "sky logs, a3-ultra: the prefix of a task of several words before the one of mpirun",
        "".join(
            f"(head, rank=0, pid=3808) [1,0]<stdout>:{row}\n" for row in (
                "   268435456       4194304     float    none      -1    885.5  303.16  284.21      0    870.7  308.30  289.03      0",
                "  8589934592     134217728     float    none      -1    24724  347.44  325.72      0    24214  354.75  332.58      0",
            )
        ),
        "all_gather", 2, nodes=2, ranks=16,
    ),
    Shape(
        "nccl-tests src/util.cu at a0b82b2: columns of -I and time stamps of -T",
        "# Collective test starting: all_reduce_perf\n" + ranks("node-a", each=8)
        + "#  size  count  type  redop  root  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%  time  algbw  busbw\n"
        "  1073741824     268435456     float     sum      -1   4253.0  252.47  441.81       0   4200.1   4300.2   4290.3"
        "      0.5   4255.4  252.33  441.57       0   4201.1   4301.2   4291.3      0.6  2026-11-28 10:00:00\n",
        "all_reduce", 1, ranks=8,
    ),
]  # fmt: skip
