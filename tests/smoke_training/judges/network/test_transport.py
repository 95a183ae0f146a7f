"""Which way the bytes went, judged from counters and logs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smoke_training.judges.network import transport
from smoke_training.judges.sampling import Sampling
from smoke_training.model import Cause, Verdict
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
    assert 'GLOO_SOCKET_IFNAME: got "mgmt0"; must be "eth0"' in words
    assert "GLOO_SOCKET_IFNAME" in str(found.next_action)


def test_one_node_on_the_wrong_path_is_enough() -> None:
    sent = [{"eth0": NEEDED * 2}, {"mgmt0": NEEDED * 2, "eth0": 10}]
    found = judge(transport.transport, world("gloo"), traffic(sent), **TWO)
    assert found.status is Verdict.FAIL
    assert any(words.startswith("nodes 0 and 1 differ: GLOO") for words in found.culprits[0].evidence)


def test_half_of_the_bytes_settles_nothing() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{"eth0": NEEDED * 7 // 10}] * 2), **TWO)
    assert found.status is Verdict.INCONCLUSIVE


def test_without_rails_gloo_has_nothing_to_prove_and_one_machine_neither() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{}, {}]), **{**TWO, "rails": []})
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
    local = {**traffic([{}, {}]), "nothing_between": "all nodes are on this machine"}
    assert judge(transport.transport, world("gloo"), local, **TWO).status is Verdict.SKIPPED


LOG = {"kind": "nccl_log", "node": 0, "networks": ["AWS Libfabric"], "providers": ["efa"], "adapters": 4,
       "via": {"NET/AWS Libfabric": 8}, "nvls": False, "lines": 99}  # fmt: skip
FABRIC = {"nodes": 2, "fabric": "efa", "rails": []}


def ports(*sent: int) -> dict[str, int]:
    return {f"efa_{index}/1": count for index, count in enumerate(sent)}


def test_on_accelerators_log_and_counters_must_agree() -> None:
    counted = traffic([{}, {}], "nccl", port_tx_bytes=ports(*[NEEDED] * 4))
    good = judge(transport.transport, world("nccl"), counted, LOG, **FABRIC)
    assert (good.status, good.required) == (Verdict.PASS, True)
    silent = judge(transport.transport, world("nccl"), counted, **FABRIC)
    assert "not proven" in " ".join(silent.culprits[0].evidence)
    sockets = {**LOG, "networks": ["Socket"], "via": {"NET/Socket": 8}}
    assert judge(transport.transport, world("nccl"), counted, sockets, **FABRIC).status is Verdict.FAIL
    idle = traffic([{"eth0": NEEDED}] * 2, "nccl", port_tx_bytes=ports(0, 0, 0, 0))
    assert accused(judge(transport.transport, world("nccl"), idle, LOG, **FABRIC))[0][1] == "transport"


def test_a_quiet_adapter_among_busy_ones_is_named() -> None:
    counted = traffic([{}, {}], "nccl", port_tx_bytes=ports(NEEDED, NEEDED, 0, NEEDED))
    found = judge(transport.transport, world("nccl"), counted, LOG, **FABRIC)
    assert accused(found) == [("nic", "0/efa_2/1", Cause.DEAD_RAIL), ("nic", "1/efa_2/1", Cause.DEAD_RAIL)]
    assert transport.balance(ports(NEEDED, NEEDED, 0, NEEDED)) == 0


def test_the_probe_stops_when_the_judge_has_seen_enough() -> None:
    found = parsed([tournament(3)]).records[-1]
    cells = found.cells  # type: ignore[attr-defined]
    sampling = Sampling(plan(nodes=3, rail_gbit_s=1.0))
    assert sampling.links(cells, (0, 1, 2), "gloo").enough
    few = parsed([{**tournament(3), "cells": [cell((0, 1), 0.95, 1, gbit_s=[0.95], starved=None,
                  segments=None, retransmitted=None, spurious=None)]}]).records[-1]  # fmt: skip
    assert not sampling.links(few.cells, (0, 1, 2), "gloo").enough  # type: ignore[attr-defined]
