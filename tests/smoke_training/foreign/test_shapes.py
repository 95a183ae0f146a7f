"""Public outputs of many shapes are read, judged or refused."""

import json

import pytest

from smoke_training.foreign import judgement, nccl_tests
from smoke_training.foreign.judgement import Claim
from smoke_training.model import Judgement, Verdict
from smoke_training.reader import DocumentError
from tests.smoke_training.foreign.shapes import OLD, ROOTED, SHAPES, Shape, output, ranks


def judged(text: str, nodes: int | None = None) -> Judgement:
    return judgement.judge(nccl_tests.parse(text.splitlines(keepends=True)), Claim(machine=None, nodes=nodes))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.source[:40])
def test_a_published_shape_is_read(shape: Shape) -> None:
    (test,) = nccl_tests.parse(shape.text.splitlines(keepends=True))
    assert (test.collective, len(test.all), test.damaged) == (shape.collective, shape.rows, 0)
    found = judged(shape.text, shape.nodes)
    assert found.verdict is Verdict.INCONCLUSIVE  # of no named machine
    assert any(note.startswith(f"{shape.ranks} ranks") for note in found.notes), found.notes


@pytest.mark.parametrize(
    ("text", "named"),
    [
        # NVIDIA/nccl-tests#287
        (ranks("node-a", device="NVIDIA GeForce RTX 5090")
         + "    33554432       8388608     float    none      -1    19.56  1715.44    0.00      0     0.78  43046.10    0.00    N/A\n",
         "one rank to a world"),
        # NVIDIA/nccl-tests#107, #109, #213: two worlds, both begin with rank 0
        ("# nThread 1 nGpus 1\n# Using devices\n# nThread 1 nGpus 1\n# Using devices\n"
         "#   Rank  0 Pid   1320 on node-a device  0 [0x00] Tesla V100-SXM2-16GB\n"
         "#   Rank  0 Pid   2066 on node-b device  0 [0x00] Tesla V100-SXM2-16GB\n" + OLD + OLD
         + "  1310720000     327680000     float     sum   4263.8   307.4   0.00    N/A   4647.4   282.0   0.00    N/A\n",
         "rank 0 is listed 2 times"),
        # MetaX C500, all_reduce_perf of maca
        (ranks("node-a", device="MetaX C500", each=8)
         + "  1073741824     536870912  bfloat16     sum      -1   29182.91   36.79   64.39      0   29181.51   36.80   64.39      0\n",
         "no device of NVIDIA"),
        # ROCm: the header alone, then a hang
        ("rccl-tests: Version develop:3f7f785\n" + ROOTED, "RCCL"),
        # MI250 without any line of devices
        ("  8589934592    2147483648     float     sum      -1    41644  206.27  360.97      0    40903  210.01  367.51      0\n"
         "# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n", "RCCL"),
        # microsoft/mscclpp#114: in place comes first, no data type
        ("[1,0]<stdout>:  3221225472     805306368    28286  113.88  213.53      0\n", "no table"),
        ("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 139.56\n", "an average (139.56 GB/s)"),
        # NVIDIA/nccl-tests#37 (2020): busbw was not corrected for the number of ranks
        ("  4294967296     134217728   float    29122  129.05  129.05  1e+00    29169  128.84  128.84  1e+00\n",
         "busbw is 1.000 of algbw"),
        # awsdocs-neuron nccom-test: another table
        ("         size(B)    count(elems)     type    time(us)    algbw(GB/s)    busbw(GB/s)\n"
         "        33554432        33554432    uint8         768          40.69          40.69\n", "no table"),
        ("#  size  count  type  redop  root  cputime  algbw  busbw #wrong  cputime  algbw  busbw #wrong\n"
         "  1073741824     268435456     float     sum      -1     12.0  89478.  156587      0     12.0  89478.  156587      0\n",
         "times of the CPU"),
        ("", "no table"),
    ],
)  # fmt: skip
def test_what_is_no_measurement_of_nccl_is_refused_with_the_reason(text: str, named: str) -> None:
    with pytest.raises(DocumentError, match=named.replace("(", r"\(").replace(")", r"\)")):
        judged(text, 1)


def test_data_types_are_distinguished_and_only_floats_are_judged() -> None:
    """-d all on H200, one node: 8-bit floats reduce slower on a healthy machine."""
    rows = (
        " 10737418240    5368709120      half     sum      -1  41741.4  257.24  482.32       0  41751.2  257.18  482.21       0\n"
        " 10737418240    2684354560     float     sum      -1  41549.0  258.43  484.55       0  41440.0  259.11  485.83       0\n"
        " 10737418240   10737418240    f8e4m3     sum      -1  55722.7  192.69  361.30       0  55771.5  192.53  360.98       0\n"
    )
    tests = nccl_tests.parse(rows.splitlines())
    assert not tests[0].disordered and len(tests[0].rows) == 3
    found = judgement.judge(tests, Claim(machine=None, nodes=2))
    assert [check.message.partition(":")[0] for check in found.checks if "f8e4m3" in check.message] == [
        "all_reduce of f8e4m3"
    ]


def test_a_list_of_ranks_that_is_cut_counts_no_nodes() -> None:
    """Test data of a Kubernetes operator, H200: two of sixteen lines are left, and 8 MiB take 8 times as long."""
    text = (
        "#  Rank  7 Group  0 Pid 2562583 on node-a device  7 [0xd7] NVIDIA H200\n"
        "#  Rank 15 Group  0 Pid 1924610 on node-b device  7 [0xd7] NVIDIA H200\n" + ROOTED
        + "     8388608       4194304  bfloat16     sum      -1   3365.2    2.49    4.67      0   1942.5    4.32    8.10      0\n"
        "    16777216       8388608  bfloat16     sum      -1    442.6   37.90   71.07      0    444.0   37.79   70.85      0\n"
        "  1073741824     536870912  bfloat16     sum      -1    22645   47.42   88.91      0    23322   46.04   86.33      0\n"
    )  # fmt: skip
    found = judged(text, 2)
    assert any(note.startswith("16 ranks on 2 nodes, by --nodes") for note in found.notes)
    assert [check.status for check in found.checks if check.id == "sweep.all_reduce"] == [
        Verdict.INCONCLUSIVE
    ]


def report(**changes: object) -> str:
    """A document as -J writes it (src/util.cu), with the figures of awsome-distributed-ai's aws-batch README."""
    half = {"time": 4253.0, "alg_bw": 252.467, "bus_bw": 441.81725, "nwrong": 0.0}
    row = {"size": 1 << 30, "count": 1 << 28, "type": "float", "redop": "sum", "root": "    -1"}
    devices = [
        {"rank": n, "hostname": "node-a", "device": n, "device_info": "NVIDIA H100 80GB HBM3"}
        for n in range(8)
    ]
    document = {
        "version": 3, "args": ["/opt/nccl-tests/build/all_reduce_perf", "-J", "out.json"], "nccl_version": 22907,
        "config": {"ngpus": 1, "iterations": 20, "devices": devices},
        "results": [{**row, "out_of_place": half, "in_place": {**half, "nwrong": None}}],
        "average_bus_bandwidth": {"bandwidth": 441.8, "okay": "unchecked"}, **changes,
    }  # fmt: skip
    return json.dumps(document, indent=1)


def test_the_json_of_newer_versions_is_judged_alike() -> None:
    found = judgement.judge(
        nccl_tests.parse(report().splitlines(True)), Claim(machine="p5.48xlarge", nodes=None)
    )
    assert found.verdict is Verdict.PASS
    assert any("means of 20 iterations" in note for note in found.notes)


@pytest.mark.parametrize("text", [report(results=[]), report()[:600], '{"results": 3}', "{"])
def test_json_that_is_cut_or_of_another_program_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="must be the JSON that nccl-tests writes"):
        judged(text)


def test_a_test_that_failed_before_another_is_an_error() -> None:
    """xxrjun/nccl-tests-cluster, pairs of nodes: alltoall_perf lost a process, sendrecv_perf ran after it."""
    text = (
        "# Collective test starting: alltoall_perf\n" + ranks("node-a", "node-b", each=4) + ROOTED
        + "node-a: Test NCCL failure common.cu:401 'remote process exited or there was a network error / '\n"
        " .. node-a pid 521888: Test failure common.cu:519\n"
        "# Collective test starting: sendrecv_perf\n" + ranks("node-a", "node-b", each=4) + ROOTED
        + "    33554432        4194304    double     sum      -1  1365.60   24.57   24.57       0  1355.00   24.76   24.76    N/A\n"
        "# Avg bus bandwidth    : 24.6\n"
    )  # fmt: skip
    found = judged(text)
    assert found.verdict is Verdict.ERROR
    assert "remote process exited" in next(
        check.message for check in found.checks if check.id == "run.completed"
    )


def test_a_collapse_at_large_messages_fails_without_any_reference() -> None:
    """The same source, H100, all-to-all of pairs of nodes: other pairs hold 23.6 GB/s at every size."""
    rows = (
        "   536870912       4194304    double    none      -1  29113.7   18.44   17.29       0  29428.6   18.24   17.10    N/A\n"
        "  8589934592      67108864    double    none      -1   860534    9.98    9.36       0   991729    8.66    8.12    N/A\n"
        " 17179869184     134217728    double    none      -1  2878449    5.97    5.60       0  2849237    6.03    5.65    N/A\n"
    )
    found = judged(
        "# Collective test starting: alltoall_perf\n" + ranks("node-a", "node-b", each=8) + ROOTED + rows
    )
    assert found.verdict is Verdict.FAIL
    assert [check.id for check in found.checks if check.status is Verdict.FAIL] == ["sweep.all_to_all"]


@pytest.mark.parametrize(
    ("machine", "nodes", "busbw", "verdict"),
    [
        ("p6e-gb200.36xlarge", 4, 191.4, Verdict.FAIL),
        ("p6e-gb200.36xlarge", 4, 882.5, Verdict.PASS),
        ("p6e-gb300r.36xlarge", 8, 376.0, Verdict.FAIL),
        ("p6e-gb300r.36xlarge", 8, 923.3, Verdict.PASS),
        ("p6e-gb300.36xlarge", 8, 376.0, Verdict.INCONCLUSIVE),
    ],
)
def test_racks_are_held_against_nvlink_between_their_nodes(
    machine: str, nodes: int, busbw: float, verdict: Verdict
) -> None:
    """Without MNNVL (IMEX not running) they reach what their NICs carry."""
    count, device = nodes * 4, f"NVIDIA {machine[4:9].upper()}"
    algbw = busbw * count / (count - 1) / 2
    column = f"{(16 << 30) / algbw / 1e3:.1f} {algbw:.2f} {busbw:.2f} 0"
    row = f"{16 << 30} {4 << 30} float sum -1 {column} {column}"
    text = ranks(*(f"node-{n}" for n in range(nodes)), device=device, each=4) + ROOTED + row + "\n"
    found = judgement.judge(nccl_tests.parse(text.splitlines(True)), Claim(machine=machine, nodes=nodes))
    assert found.verdict is verdict, found.checks


@pytest.mark.parametrize(
    ("machine", "device", "network"),
    [
        ("p4d.24xlarge", "NVIDIA A100-SXM4-40GB", 50),
        ("a3-megagpu-8g", "NVIDIA H100 80GB HBM3", 200),
        ("a4-highgpu-8g", "NVIDIA B200", 400),
    ],
)
def test_a_quarter_of_the_wires_lost_is_no_pass_where_no_figure_is_published(
    machine: str, device: str, network: float
) -> None:
    """The wires alone say what four nodes can do; NICs that work leave 0.75 of it."""
    for share, verdict in ((0.74, Verdict.INCONCLUSIVE), (0.83, Verdict.PASS)):
        text = output("all_reduce", {16 << 30: share * network}, "a", "b", "c", "d", device=device)
        tests, claim = nccl_tests.parse(text.splitlines(True)), Claim(machine=machine, nodes=None)
        assert judgement.judge(tests, claim).verdict is verdict


def test_a_last_line_of_ranks_alone_leaves_their_number_to_the_bus_factor() -> None:
    """coreweave/nccl-tests#43, one GB200 NVL72 rack: of 72 lines the last is left."""
    text = (
        "#  Rank 71 Group  0 Pid  14840 on node-r device  3 [0x01] NVIDIA Graphics Device\n"
        + ROOTED
        + "  1073741824     268435456     float     sum      -1   3108.8  345.38  681.17      0   2924.7  367.13  724.06      0\n"
        "  4294967296    1073741824     float     sum      -1    10094  425.49  839.16      0    10141  423.54  835.32      0\n"
    )
    found = judgement.judge(nccl_tests.parse(text.splitlines(True)), Claim(machine="gb200-nvl72", nodes=None))
    assert any(note.startswith("72 ranks on 18 nodes") for note in found.notes), found.notes


def payload(text: str) -> list[Verdict]:
    return [check.status for check in judged(text, 1).checks if check.id == "collective.payload"]


def test_wrong_results_fail_by_their_own_count_too_but_not_where_no_result_is_defined() -> None:
    named, total = "# Collective test starting: {}_perf\n", "# Out of bounds values : {}\n"
    row = " 1073741824 16777216 float none -1 5516.7 194.63 170.30 {} 5513.4 194.75 170.41 {}\n"  # 8 ranks
    assert payload(named.format("alltoall") + row.format(0, 7)) == []
    assert payload(named.format("alltoall") + row.format(7, 0)) == [Verdict.FAIL]
    assert payload(named.format("all_gather") + row.format(0, 7)) == [Verdict.FAIL]
    assert payload(named.format("all_gather") + row.format(0, "nan")) == [Verdict.FAIL]
    assert payload(row.format(0, 7) + total.format("2 FAILED")) == [Verdict.FAIL]
    assert payload(named.format("all_gather") + row.format(0, 0) + total.format("2 FAILED")) == [Verdict.FAIL]


@pytest.mark.parametrize(
    ("machine", "device", "fits"),
    [
        ("p5.48xlarge", "NVIDIA A100-SXM4-80GB", False),
        ("p5.48xlarge", "NVIDIA H100 80GB HBM3", True),
        ("a3-ultragpu-8g", "NVIDIA H100 80GB HBM3", False),
        ("hgx-h200", "NVIDIA GH200 480GB", False),
        ("p6-b200.48xlarge", "NVIDIA GB200", False),
        ("gb200-nvl72", "NVIDIA Graphics Device", True),
        ("hgx-h200", "NVIDIA H200", True),
        ("hgx-h200", "NVIDIA H200 NVL", False),
        ("hgx-h100", "NVIDIA H100 PCIe", False),
        ("hgx-h100", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", False),
        ("hgx-a100", "NVIDIA A100-SXM4-80GB", True),
        ("hgx-a100", "A100-PCIE-40GB", False),
        ("hgx-a100", "NVIDIA A100 80GB PCIe", False),
        ("our-cluster", "NVIDIA GB200", True),
    ],
)
def test_ranks_on_other_gpus_than_those_of_the_machine_are_refused(
    machine: str, device: str, fits: bool
) -> None:
    text = ranks("node-a", "node-b", device=device, each=8) + (
        "  1073741824     268435456     float     sum      -1    11774   91.20  170.99      0    11774   91.19  170.99      0\n"
    )
    tests, claim = nccl_tests.parse(text.splitlines(True)), Claim(machine=machine, nodes=None)
    if fits:
        assert judgement.judge(tests, claim).verdict is not Verdict.ERROR
    else:
        with pytest.raises(DocumentError, match=f"{device!r}; --machine {machine} has"):
            judgement.judge(tests, claim)
