"""Reading NCCL's log and settings. The lines are from published logs, with invented host names."""

from pathlib import Path

import pytest

from smoke_training.fabric import Fabric
from smoke_training.nccl import transport
from smoke_training.nccl.log import read_log
from smoke_training.probes.network.traffic import log_settings

EFA = """\
node-0:172:172 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
node-0:172:172 [0] NCCL INFO Using network AWS Libfabric
node-0:172:301 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/AWS Libfabric/3/GDRDMA
node-0:172:301 [0] NCCL INFO Channel 01/0 : 15[7] -> 0[0] [receive] via NET/AWS Libfabric/0/GDRDMA
node-0:172:301 [0] NCCL INFO Channel 02/0 : 0[0] -> 1[1] via P2P/CUMEM
node-0:172:301 [0] NCCL INFO NVLS comm 0x55cdbfbb89a0 headRank 1 nHeads 8 buffSize 1048576
""".splitlines()
SOCKETS = """\
node-0:152:386 [0] NCCL INFO NET/IB : No device found.
node-0:152:386 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.4.51<0>
node-0:152:386 [0] NCCL INFO Using network Socket
node-0:152:390 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0
""".splitlines()
IB = """\
ib-0:9:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [RO]; OOB eno1:10.0.0.9<0>
node-0:9:9 [0] NCCL INFO Using network IB
node-0:9:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [receive] via NET/IB/4/GDRDMA
""".splitlines()
# As published of runs on GKE 1.35 (2026-07), and by Google of gIB.
TCPXO = """\
wb-0:326:326 [7] NCCL INFO NET/FasTrak 2026-07-28T11:09:08: Initializing network FasTrak, version: 1.0.17
wb-0:319:319 [0] NCCL INFO Using network FasTrak
""".splitlines()
TCPX = """\
[0] NCCL INFO NET/GPUDirectTCPX : GPUDirectTCPX enable: 1
[0] NCCL INFO NET/GPUDirectTCPX initialization start
[0] NCCL INFO Using network GPUDirectTCPX_v7
""".splitlines()
GIB = """\
vm-0:606:642 [6] NCCL INFO NET/gIB : Initializing gIB v1.0.5
vm-0:606:642 [6] NCCL INFO Using network gIB
""".splitlines()


def test_a_log_says_network_provider_adapters_channels_and_nvls() -> None:
    found = read_log([*EFA, "unrelated words"])
    assert (found.networks, found.providers, found.adapters) == (("AWS Libfabric",), ("efa",), 32)
    assert found.via == {"NET/AWS Libfabric": 2, "P2P/CUMEM": 1}
    assert found.direct == {"NET/AWS Libfabric": 2}
    assert found.nvls
    assert found.lines == 6


def test_adapters_of_infiniband_are_counted() -> None:
    found = read_log(IB)
    assert (found.networks, found.adapters, found.nvls) == (("IB",), 3, False)
    assert found.ports == {"mlx5_0/1": "IB", "mlx5_1/1": "IB", "mlx5_2/1": "IB"}
    assert found.used == ()  # channels go by device 4, which is none of these: ports were merged


def test_named_ports_carry_their_link_layer_and_whether_channels_go_by_them() -> None:
    """As in NVIDIA/nccl#707 (two RoCE ports beside InfiniBand's), and with rail and plane as of 2.28."""
    named = (
        "n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_8:1/IB [1]mlx5_9:1:0:2/IB [2]mlx5_16:1/RoCE ; OOB ib8:x"
    )
    by = "n:1:9 [1] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [send] via NET/IB/{}"
    found = read_log([named, by.format("0(5)/GDRDMA(PCI)/Shared"), by.format("1")])
    assert found.ports == {"mlx5_16/1": "RoCE", "mlx5_8/1": "IB", "mlx5_9/1": "IB"}
    assert found.used == ("mlx5_8/1", "mlx5_9/1")
    assert (found.via, found.direct) == ({"NET/IB": 2}, {"NET/IB": 1})
    assert transport.adapters_found(Fabric.INFINIBAND, found) == 2
    assert transport.adapters_found(Fabric.RDMA, found) == 1
    gib = read_log([line.replace("NET/IB", "NET/gIB") for line in (named, by.format("2/GDRDMA"))])
    assert (gib.used, gib.direct) == (("mlx5_16/1",), {"NET/gIB": 1})


def test_merged_ports_sharp_nvlink_between_nodes_and_plugins_are_read() -> None:
    made = "ib-0:9:9 [0] NCCL INFO NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=800000 ndevs=2"
    merged = read_log([*IB, made, "ib-0:9:9 [0] NCCL INFO rank 0 Connected CollNet"])
    assert merged.used == ("mlx5_0/1", "mlx5_1/1")
    assert (merged.collnet, merged.mnnvl) == (True, None)
    head = "n:1:1 [0] NCCL INFO comm 0x55 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL {}"
    assert [read_log([head.format(value)]).mnnvl for value in (0, 1)] == [False, True]
    own = "n:1:1 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.16.3"
    found = read_log([own, *TCPXO, *GIB]).plugins
    assert found == ("FasTrak 1.0.17", "aws-ofi-nccl 1.16.3", "gIB 1.0.5")


MERGED_LIST = (  # NVIDIA/nccl-tests#373, HPC-X; NCCL 2.20 to 2.23 print the same
    "n:1:1 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} "
    "[1]={[2] mlx5_0:1/RoCE, [3] mlx5_1:1/RoCE} [4]mlx5_bond_0:1/RoCE [RO]; OOB bond0.526:x<0>"
)


@pytest.mark.parametrize("network", ["IB", "gIB", "IBext", "IBext_v8", "IBext_v11", "UCX"])
def test_ports_merged_in_the_list_are_all_counted_and_channels_name_their_device(network: str) -> None:
    channel = f"n:1:9 [1] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [send] via NET/{network}/{{}}/GDRDMA"
    found = read_log([MERGED_LIST, channel.format("1(3)")])
    assert sorted(found.ports) == ["mlx5_0/1", "mlx5_1/1", "mlx5_2/1", "mlx5_3/1", "mlx5_bond_0/1"]
    assert (found.used, found.adapters) == (("mlx5_0/1", "mlx5_1/1"), 5)
    assert transport.adapters_found(Fabric.RDMA, found) == 5
    # A port by itself is printed with its own number, 4; channels name its device, the third.
    assert read_log([MERGED_LIST, channel.format("2")]).used == ("mlx5_bond_0/1",)


def test_a_list_that_is_not_understood_leaves_the_number_of_adapters_open() -> None:
    found = read_log(["n:1:1 [0] NCCL INFO NET/IB : Using something new", IB[1]])
    assert (found.adapters, found.ports) == (None, {})
    assert not transport.adapter_problems(Fabric.RDMA, found, 16, direct=False)
    assert transport.adapter_doubts(Fabric.RDMA, found, 16, direct=False)


def test_data_direct_devices_are_the_adapters_that_the_kernel_counts() -> None:
    """By default NCCL 2.28 lists only them; with NCCL_IB_DATA_DIRECT=2 beside the others."""
    line = (
        "n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0_dma:1/RoCE [1]mlx5_1_dma:1/RoCE {}[RO]; OOB eth0:x<0>"
    )
    made = "n:1:1 [0] NCCL INFO NET/IB : Made virtual device [4] name=mlx5_0_dma+mlx5_1_dma speed=800000"
    channel = "n:1:9 [1] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [send] via NET/IB/{}/GDRDMA"
    for more in ("", "[2]mlx5_0:1/RoCE [3]mlx5_1:1/RoCE "):
        found = read_log([line.format(more), made, channel.format(1)])
        assert (found.ports, found.adapters) == ({"mlx5_0/1": "RoCE", "mlx5_1/1": "RoCE"}, 2)
        assert found.used == ("mlx5_1/1",)
        assert transport.adapters_used(Fabric.RDMA, found, {"mlx5_0/1": 1, "mlx5_1/1": 9}) == {"mlx5_1/1": 9}
        assert read_log([line.format(more), made, channel.format(4)]).used == (
            "mlx5_0/1",
            "mlx5_1/1",
        )


@pytest.mark.parametrize(
    ("fabric", "lines", "words"),
    [
        ("efa", EFA, []),
        ("infiniband", IB, []),
        ("tcpxo", TCPXO, []),
        ("tcpx", TCPX, []),
        ("rdma", GIB, []),
        ("tcpxo", TCPX, ['"Using network GPUDirectTCPX_v7"']),
        ("tcpx", TCPXO, ['"Using network FasTrak"']),
        ("rdma", SOCKETS, ['"Using network Socket"', "1 channel ends go via NET/Socket"]),
        ("tcpxo", SOCKETS, ['"Using network Socket"', "1 channel ends go via NET/Socket"]),
        ("efa", SOCKETS, ['"Using network Socket"', "1 channel ends go via NET/Socket"]),
        ("infiniband", SOCKETS, ['"Using network Socket"', "1 channel ends go via NET/Socket"]),
        ("tcpx", SOCKETS, ['"Using network Socket"', "1 channel ends go via NET/Socket"]),
        ("efa", [], ["names no network"]),
        ("efa", [line.replace("is efa", "is tcp") for line in EFA], ["selected the provider tcp"]),
        ("tcp", SOCKETS, []),
    ],
)
def test_what_contradicts_a_fabric_is_named(fabric: str, lines: list[str], words: list[str]) -> None:
    found = transport.log_problems(Fabric(fabric), read_log(lines))
    assert len(found) == len(words)
    assert all(word in problem for word, problem in zip(words, found, strict=True))


@pytest.mark.parametrize(
    ("selection", "excluded"),
    [
        (None, False),
        ("^lo,docker", False),
        ("^lo,docker,pod-id-link0", True),
        ("^=pod-id-link0", True),
        ("^=pod-id-link", False),
        ("eth", True),
        ("=eth0,eth1", True),
        ("pod", False),
    ],
)
def test_interface_selections_are_read_as_nccl_does(selection: str | None, excluded: bool) -> None:
    assert transport.excludes(selection, transport.LINK_LOCAL) is excluded


def test_every_wrong_setting_is_named_at_once() -> None:
    wrong = {"NCCL_NET": "Socket", "FI_PROVIDER": "tcp", "NCCL_SOCKET_IFNAME": "^lo"}
    found = transport.setting_problems(Fabric.EFA, wrong)
    assert [problem.split(":")[0] for problem in found] == ["NCCL_NET", "FI_PROVIDER", "NCCL_SOCKET_IFNAME"]
    assert all("must be" in problem for problem in found)
    right = {"FI_PROVIDER": "efa", "NCCL_SOCKET_IFNAME": "^lo,docker,pod-id-link0"}
    assert transport.setting_problems(Fabric.EFA, right) == []
    (problem,) = transport.setting_problems(Fabric.INFINIBAND, {"NCCL_IB_DISABLE": "1"})
    assert problem.startswith("NCCL_IB_DISABLE")


def test_the_snapshot_of_settings_has_no_secrets_and_nothing_else() -> None:
    values = {"NCCL_NET": "x", "NCCL_API_TOKEN": "s", "GLOO_SOCKET_IFNAME": "eth0", "HOME": "/root"}
    assert transport.environment(values) == {"NCCL_NET": "x", "GLOO_SOCKET_IFNAME": "eth0"}


def test_nodes_are_compared_setting_by_setting() -> None:
    assert transport.differences({"A": "1", "B": "2"}, {"B": "2", "C": "3"}) == [
        'A: got "1" | not set',
        'C: not set | got "3"',
    ]


def test_a_log_is_asked_for_unless_the_user_asked_for_another(tmp_path: Path) -> None:
    wanted = log_settings(tmp_path, {"NCCL_DEBUG": "warn", "NCCL_DEBUG_FILE": "/x"})
    assert wanted["NCCL_DEBUG"] == "INFO"
    assert wanted["NCCL_DEBUG_FILE"].startswith(str(tmp_path))
    own = log_settings(tmp_path, {"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_SUBSYS": "ALL"})
    assert list(own) == ["NCCL_DEBUG_FILE"]


@pytest.mark.parametrize(
    ("fabric", "needed"), [("efa", True), ("tcpxo", True), ("rdma", True), ("tcp", False)]
)
def test_only_fabrics_of_accelerators_must_be_proven(fabric: str, needed: bool) -> None:
    assert transport.must_be_proven(Fabric(fabric)) is needed
