"""Transport of the bytes, judged from counters and logs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smoke_training.judges.network import transport
from smoke_training.judges.sampling import VerdictSampling
from smoke_training.model import Cause, Check, Verdict
from tests.smoke_training.judges.network.wires import accused, cell, judge, tournament
from tests.smoke_training.samples import parsed, plan

NEEDED = 6 * (4 << 20)


def traffic(sent: Sequence[Mapping[str, int]], backend: str = "gloo", **changes: Any) -> dict[str, Any]:
    nodes = [
        {"node": index, "tx_bytes": dict(counts), "rx_bytes": {}, "port_tx_bytes": {}, "port_rx_bytes": {},
         "segments": 1000, "retransmitted": 0, "spurious": 0,
         "environment": {"GLOO_SOCKET_IFNAME": next(iter(counts), "")}, **changes}
        for index, counts in enumerate(sent)
    ]  # fmt: skip
    return {"kind": "traffic", "operations": 6, "size_bytes": 4 << 20, "seconds": 0.4, "backend": backend,
            "nodes": nodes, "nothing_between": None, "phase_seconds": 5.0,
            "phase_tx_bytes": [{}, {}]}  # fmt: skip


def world(backend: str) -> dict[str, Any]:
    facts = {"host": "h", "pid": 1, "device": "cpu", "backend": backend, "python": "3", "torch": "2",
             "kernel": "6", "cpus": 2, "nccl": None, "gpu_memory_bytes": None}  # fmt: skip
    return {"kind": "world", "wanted": 2, "ranks": [{"rank": n, "node": n, **facts} for n in (0, 1)]}


TWO = {"nodes": 2, "fabric": "tcp"}


def test_bytes_on_the_rails_prove_the_transport() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{"eth0": NEEDED + 9}] * 2), **TWO)
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert found.measured.detail["wire_gbit_s"] == [pytest.approx(0.5, rel=0.02)] * 2


def test_bytes_on_another_interface_are_a_fallback_with_interface_and_setting() -> None:
    sent = [{"mgmt0": NEEDED * 2, "eth0": 4000}] * 2
    found = judge(transport.transport, world("gloo"), traffic(sent), **TWO)
    assert accused(found) == [("stack", "transport", Cause.TCP_FALLBACK)]
    words = " ".join(found.culprits[0].evidence)
    assert f"mgmt0 sent {NEEDED * 2}" in words
    assert 'got "mgmt0"' in words and '"eth0"' in words
    assert "GLOO_SOCKET_IFNAME" in str(found.next_action)


def test_one_node_on_the_wrong_path_is_enough() -> None:
    sent = [{"eth0": NEEDED * 2}, {"mgmt0": NEEDED * 2, "eth0": 10}]
    found = judge(transport.transport, world("gloo"), traffic(sent), **TWO)
    assert found.status is Verdict.FAIL
    assert any("differ: GLOO" in words for words in found.culprits[0].evidence)


def test_half_of_the_bytes_settles_nothing() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{"eth0": NEEDED * 7 // 10}] * 2), **TWO)
    assert found.status is Verdict.INCONCLUSIVE


def test_without_rails_gloo_has_nothing_to_prove_and_one_machine_neither() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{}, {}]), **{**TWO, "rails": []})
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
    local = {**traffic([{}, {}]), "nothing_between": "all nodes are on this machine"}
    assert judge(transport.transport, world("gloo"), local, **TWO).status is Verdict.SKIPPED


EFA = {"networks": ["AWS Libfabric"], "providers": ["efa"], "adapters": 4,
       "via": {"NET/AWS Libfabric": 8}, "direct": {"NET/AWS Libfabric": 8}}  # fmt: skip
IB = {"networks": ["IB"], "providers": [], "adapters": 8, "via": {"NET/IB": 8}, "direct": {"NET/IB": 8}}
FABRIC = {"nodes": 2, "fabric": "efa", "rails": []}
AZURE = {"nodes": 2, "fabric": "infiniband", "rails": [], "instance_type": "Standard_ND96isr_H100_v5"}
IB_PORTS = {f"mlx5_ib{index}/1": "IB" for index in range(8)}


def ports(*sent: int) -> dict[str, int]:
    return {f"efa_{index}/1": count for index, count in enumerate(sent)}


def logs(base: Mapping[str, Any], **changes: Any) -> list[dict[str, Any]]:
    """What NCCL's log says on both nodes."""
    return [
        {"kind": "nccl_log", "node": node, "nvls": False, "lines": 99, **base, **changes} for node in (0, 1)
    ]


def on_nccl(sent: Mapping[str, int], said: Sequence[dict[str, Any]], **changes: Any) -> Check:
    """Both nodes sent so many bytes from their RDMA ports."""
    wanted = {**FABRIC, **changes}
    inactive = wanted.pop("inactive", [])
    counted = traffic([{}, {}], "nccl", port_tx_bytes=dict(sent), inactive=inactive)
    return judge(transport.transport, world("nccl"), counted, *said, **wanted)


def test_on_accelerators_log_and_counters_must_agree() -> None:
    even = ports(*[NEEDED] * 4)
    good = on_nccl(even, logs(EFA))
    assert (good.status, good.required) == (Verdict.PASS, True)
    without, half = on_nccl(even, []), on_nccl(even, logs(EFA)[:1])
    assert without.status is half.status is Verdict.INCONCLUSIVE
    assert "not proven" in without.message
    assert "node 1: no" in half.message and "node 0: no" not in half.message
    assert on_nccl(even, logs(EFA, networks=["Socket"], via={"NET/Socket": 8})).status is Verdict.FAIL
    idle = traffic([{"eth0": NEEDED}] * 2, "nccl", port_tx_bytes=ports(0, 0, 0, 0))
    found = judge(transport.transport, world("nccl"), idle, *logs(EFA), **FABRIC)
    assert accused(found)[0][1] == "transport"


def test_ucx_is_a_network_of_infiniband_that_the_counters_prove() -> None:
    names = {"networks": ["UCX"], "via": {"NET/UCX": 8}, "direct": {"NET/UCX": 8}}
    said = logs(IB, ports=IB_PORTS, used=list(IB_PORTS), **names)
    assert on_nccl(dict.fromkeys(IB_PORTS, NEEDED), said, **AZURE).status is Verdict.PASS
    assert on_nccl(dict.fromkeys(IB_PORTS, 0), said, **AZURE).status is Verdict.FAIL  # UCX over TCP


def test_a_port_of_unknown_bytes_is_not_held_against_the_transport() -> None:
    said = logs(IB, ports=IB_PORTS, used=list(IB_PORTS))
    sent = dict.fromkeys(list(IB_PORTS)[1:], NEEDED)
    assert on_nccl(sent, said, **AZURE).status is Verdict.PASS
    assert on_nccl({}, said, **AZURE).status is Verdict.INCONCLUSIVE


def test_who_fell_back_without_a_wrong_setting_is_sent_to_the_log_that_was_written() -> None:
    sent = dict.fromkeys(IB_PORTS, NEEDED)
    found = on_nccl(sent, logs(IB, networks=["Socket"], via={"NET/Socket": 8}), **AZURE)
    assert accused(found)[0][2] is Cause.TCP_FALLBACK
    assert "nccl-*.log" in str(found.next_action)


def test_a_quiet_adapter_among_busy_ones_is_named() -> None:
    found = on_nccl(ports(NEEDED, NEEDED, 0, NEEDED), logs(EFA))
    assert accused(found) == [("nic", "0/efa_2/1", Cause.DEAD_RAIL), ("nic", "1/efa_2/1", Cause.DEAD_RAIL)]
    assert transport.balance(ports(NEEDED, NEEDED, 0, NEEDED)) == 0


def test_an_adapter_that_does_less_than_its_part_is_reported_and_gates_nothing() -> None:
    found = on_nccl(ports(NEEDED, NEEDED, NEEDED * 6 // 10, NEEDED), logs(EFA))
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert found.measured.detail["balance"] == pytest.approx({"0": 0.6, "1": 0.6})


def test_an_idle_port_beside_merged_ones_is_not_accused() -> None:
    """This log does not name the ports of the merged devices; one may serve storage."""
    roce = dict.fromkeys((*[f"mlx5_{index}/1" for index in range(8)], "mlx5_storage/1"), "RoCE")
    sent = dict.fromkeys(roce, NEEDED) | {"mlx5_storage/1": 10}
    changes = {"fabric": "rdma", "instance_type": "a3-ultragpu-8g"}
    found = on_nccl(sent, logs(IB, ports=roce), **changes)
    assert found.status is Verdict.INCONCLUSIVE
    assert "NCCL_IB_HCA" in found.message and "mlx5_storage/1" in found.message
    gone = on_nccl(sent, logs(IB, ports=roce), inactive=["mlx5_storage/1"], **changes)
    assert accused(gone)[0][2] is Cause.DEAD_RAIL


def test_ports_that_a_pod_cannot_see_leave_the_transport_open() -> None:
    found = on_nccl({}, logs(IB, ports=IB_PORTS), **AZURE)
    assert found.status is Verdict.INCONCLUSIVE and "no counter" in found.message
    counted = traffic([{"eth0": NEEDED * 2}] * 2, "nccl")
    assert judge(transport.transport, world("nccl"), counted, *logs(IB), **AZURE).status is Verdict.FAIL


def test_sharp_that_was_asked_for_and_is_not_in_use_is_no_pass() -> None:
    sent = dict.fromkeys(IB_PORTS, NEEDED)
    wanted = {"NCCL_COLLNET_ENABLE": "1"}
    counted = traffic([{}, {}], "nccl", port_tx_bytes=sent, environment=wanted)
    lost = judge(transport.transport, world("nccl"), counted, *logs(IB, ports=IB_PORTS), **AZURE)
    assert lost.status is Verdict.INCONCLUSIVE and "SHARP" in lost.message
    used = logs(IB, ports=IB_PORTS, collnet=True)
    assert judge(transport.transport, world("nccl"), counted, *used, **AZURE).status is Verdict.PASS


def test_nvlink_between_nodes_is_proven_by_the_log() -> None:
    rack = {"nodes": 2, "fabric": "nvlink", "rails": [], "instance_type": "gb200-nvl72", "gpus_per_node": 4}
    base = {"networks": ["IB"], "providers": [], "adapters": 4, "via": {"P2P/MNNVL": 8}, "direct": {}}
    status = {mnnvl: on_nccl({}, logs(base, mnnvl=mnnvl), **rack).status for mnnvl in (True, None, False)}
    assert status == {True: Verdict.PASS, None: Verdict.INCONCLUSIVE, False: Verdict.FAIL}


def test_adapters_that_nccl_does_not_name_are_no_dead_rails() -> None:
    """mlx5_an0 is Azure's accelerated Ethernet; NCCL may name it, too, as RoCE."""
    sent = dict.fromkeys(IB_PORTS, NEEDED) | {"mlx5_an0/1": 1000}
    assert on_nccl(sent, logs(IB, ports=IB_PORTS), **AZURE).status is Verdict.PASS
    both = {**IB_PORTS, "mlx5_an0/1": "RoCE"}
    assert on_nccl(sent, logs(IB, ports=both, adapters=9), **AZURE).status is Verdict.PASS
    lost = {**sent, "mlx5_ib3/1": 0}
    found = on_nccl(lost, logs(IB, ports=both), inactive=["mlx5_ib3/1"], **AZURE)
    assert accused(found)[0] == ("nic", "0/mlx5_ib3/1", Cause.DEAD_RAIL)


def test_a_storage_adapter_that_no_channel_goes_by_is_idle_and_not_dead() -> None:
    roce = dict.fromkeys((*[f"mlx5_{index}/1" for index in range(8)], "mlx5_storage/1"), "RoCE")
    sent = dict.fromkeys(roce, NEEDED) | {"mlx5_storage/1": 10}
    said = logs({**IB, "networks": ["gIB"]}, ports=roce, used=[f"mlx5_{index}/1" for index in range(8)])
    changes = {"fabric": "rdma", "instance_type": "a3-ultragpu-8g"}
    assert on_nccl(sent, said, **changes).status is Verdict.PASS


def test_ports_of_efa_that_are_not_active_or_not_taken_are_left_out() -> None:
    sent = ports(NEEDED, NEEDED, NEEDED, NEEDED, 0)
    assert on_nccl(sent, logs(EFA), inactive=["efa_4/1"]).status is Verdict.PASS
    assert on_nccl(sent, logs(EFA)).status is Verdict.PASS  # the plugin found four of the five


def test_fewer_adapters_than_the_machine_type_has_are_a_fault_on_all_nodes_alike() -> None:
    found = on_nccl(ports(NEEDED, NEEDED), logs(EFA, adapters=2))
    assert accused(found) == [("node", "0", Cause.DEAD_RAIL), ("node", "1", Cause.DEAD_RAIL)]
    assert any("2 adapters" in item for item in found.culprits[0].evidence)
    p5 = on_nccl(ports(*[NEEDED] * 16), logs(EFA, adapters=16), instance_type="p5.48xlarge")
    assert "16 adapters" in p5.message
    p5en = on_nccl(ports(*[NEEDED] * 16), logs(EFA, adapters=16), instance_type="p5en.48xlarge")
    assert p5en.status is Verdict.PASS
    unsaid = on_nccl(ports(NEEDED, NEEDED, NEEDED, 0), logs(EFA, adapters=None))
    assert unsaid.status is Verdict.INCONCLUSIVE
    assert "has 4" in unsaid.message
    infiniband = dict(list(IB_PORTS.items())[:7])
    lost = on_nccl(dict.fromkeys(IB_PORTS, NEEDED), logs(IB, ports=infiniband), **AZURE)
    assert "7 adapters" in lost.message


def test_lost_gpudirect_is_a_fault_where_the_machine_type_has_it() -> None:
    even = ports(*[NEEDED] * 4)
    found = on_nccl(even, logs(EFA, direct={}))
    assert accused(found) == [("node", "0", Cause.MISCONFIGURED), ("node", "1", Cause.MISCONFIGURED)]
    assert "none of 8" in found.message
    part = on_nccl(even, logs(EFA, direct={"NET/AWS Libfabric": 6}))
    assert part.status is Verdict.INCONCLUSIVE
    assert "2 of 8" in part.message
    assert on_nccl(even, logs(EFA, via={}, direct={})).status is Verdict.INCONCLUSIVE
    unknown = {"instance_type": "p3dn.24xlarge"}
    assert on_nccl(ports(NEEDED), logs(EFA, adapters=1, direct={}), **unknown).status is Verdict.PASS


def test_one_node_without_an_adapter_is_accused_and_no_setting_is() -> None:
    """The settings differ and one forbids the plugin: on purpose, for the bytes went by the fabric."""
    sent = dict.fromkeys(list(IB_PORTS)[:7], NEEDED)
    counted = traffic([{}, {}], "nccl", port_tx_bytes=sent, environment={"NCCL_NET_PLUGIN": "none"})
    counted["nodes"][1]["environment"] = {"NCCL_DEBUG": "INFO"}
    whole, less = logs(IB, ports=IB_PORTS)[0], logs(IB, ports=dict(list(IB_PORTS.items())[:7]))[1]
    found = judge(transport.transport, world("nccl"), counted, whole, less, **AZURE)
    assert accused(found) == [("node", "1", Cause.DEAD_RAIL)]
    assert found.measured is not None
    assert found.measured.detail["settings"] == []
    assert "NCCL_NET_PLUGIN" not in str(found.next_action)


def test_the_probe_stops_when_the_judge_has_seen_enough() -> None:
    found = parsed([tournament(3)]).records[-1]
    cells = found.cells  # type: ignore[attr-defined]
    sampling = VerdictSampling(plan(nodes=3, rail_gbit_s=1.0))
    assert sampling.links(cells, (0, 1, 2), "gloo").enough
    few = parsed([{**tournament(3), "cells": [cell((0, 1), 0.95, 1, gbit_s=[0.95], starved=None,
                  segments=None, retransmitted=None, spurious=None)]}]).records[-1]  # fmt: skip
    assert not sampling.links(few.cells, (0, 1, 2), "gloo").enough  # type: ignore[attr-defined]


NONE: Mapping[str, Any] = {"providers": [], "adapters": None, "via": {}, "direct": {}}
TCPX = {"networks": ["GPUDirectTCPX_v7"], **NONE}
TCPXO = {"networks": ["FasTrak"], **NONE}
ETH = {
    "tcpx": {"NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "eth1,eth2,eth3,eth4", "NCCL_SOCKET_IFNAME": "eth0"},
    "tcpxo": {"NCCL_FASTRAK_IFNAME": "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8"},
}
HIGH = {"nodes": 2, "fabric": "tcpx", "rails": [], "instance_type": "a3-highgpu-8g"}
MEGA = {"nodes": 2, "fabric": "tcpxo", "rails": [], "instance_type": "a3-megagpu-8g"}


def on_google(
    plan: Mapping[str, Any], sent: Sequence[Mapping[str, int]], said: Sequence[dict[str, Any]], **changes: Any
) -> Check:
    """Nodes of A3 whose interfaces sent so many bytes."""
    counted = traffic(sent, "nccl", **{"environment": ETH[plan["fabric"]], **changes})
    return judge(transport.transport, world("nccl"), counted, *said, **plan)


def eth(first: int, *gpus: int) -> dict[str, int]:
    return {"lo": NEEDED * 9, "eth0": first} | {f"eth{index}": sent for index, sent in enumerate(gpus, 1)}


def test_tcpx_is_proven_by_its_log_and_the_interfaces_of_the_gpus() -> None:
    healthy = [eth(43_000, *[NEEDED // 3] * 4)] * 2
    assert on_google(HIGH, healthy, logs(TCPX)).status is Verdict.PASS
    assert on_google(HIGH, healthy, logs(TCPX), environment={}).status is Verdict.PASS
    dead = on_google(HIGH, [eth(43_000, NEEDED, NEEDED, 0, NEEDED)] * 2, logs(TCPX))
    assert accused(dead) == [("nic", "0/eth3", Cause.DEAD_RAIL), ("nic", "1/eth3", Cause.DEAD_RAIL)]
    fallen = on_google(HIGH, [eth(NEEDED * 2, 90, 90, 90, 90)] * 2, logs(TCPX))
    assert accused(fallen)[0][2] is Cause.TCP_FALLBACK
    assert any(f"eth0 sent {NEEDED * 2}" in words for words in fallen.culprits[0].evidence)


def test_tcpxo_is_proven_by_its_log_as_no_counter_has_its_bytes() -> None:
    healthy = [eth(43_000, *[9_000 + 100 * index for index in range(8)])] * 2
    found = on_google(MEGA, healthy, logs(TCPXO))
    assert (found.status, found.required) == (Verdict.PASS, True)
    # The run says so, and its bytes are elsewhere: on one node of both.
    one = on_google(MEGA, [healthy[0], eth(NEEDED * 2, *[9_000] * 8)], logs(TCPXO))
    assert accused(one)[0][2] is Cause.TCP_FALLBACK
    half = on_google(MEGA, [eth(NEEDED * 3 // 10, *[9_000] * 8)] * 2, logs(TCPXO))
    assert half.status is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("plan", [HIGH, MEGA])
def test_a_log_of_sockets_or_bytes_of_the_first_interface_is_a_fallback_on_a3(
    plan: Mapping[str, Any],
) -> None:
    sent = [eth(43_000, *[NEEDED // 3] * 8)] * 2
    said = logs({**NONE, "networks": ["Socket"], "via": {"NET/Socket": 8}})
    assert accused(on_google(plan, sent, said))[0][2] is Cause.TCP_FALLBACK
    elsewhere = [eth(NEEDED * 2)] * 2
    assert accused(on_google(plan, elsewhere, []))[0][2] is Cause.TCP_FALLBACK


def test_a3_without_log_and_interfaces_is_not_decided_and_its_log_alone_proves_it() -> None:
    unseen = [eth(43_000)] * 2  # eth1 and further ones are in the namespace of the node, not of the pod
    for machine, said in ((HIGH, TCPX), (MEGA, TCPXO)):
        assert on_google(machine, unseen, []).status is Verdict.INCONCLUSIVE
        assert on_google(machine, unseen, logs(said)).status is Verdict.PASS
