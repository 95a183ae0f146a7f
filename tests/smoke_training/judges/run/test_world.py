"""Participants of a run, and their equality."""

from typing import Any

import pytest

from smoke_training import evidence, verdict
from smoke_training.judges.run import world
from smoke_training.model import Cause, Check, Verdict
from smoke_training.runtime import facts as node_facts
from smoke_training.runtime import host
from tests.smoke_training.samples import CPU, facts, hello, lines, parsed, plan


def judged(*joined: dict[str, Any], wanted: int = 3, **plan_changes: Any) -> Check:
    items = [*lines(), hello(*joined, wanted=wanted)]
    result = verdict.judge(plan(nodes=wanted, **plan_changes), parsed(items))
    return next(check for check in result.checks if check.id == "preflight.nodes")


def three(**third: Any) -> list[dict[str, Any]]:
    return [facts(0), facts(1), facts(2, **third)]


def test_nodes_that_are_alike_pass() -> None:
    found = judged(*three())
    assert found.status is Verdict.PASS
    assert found.message.startswith("3 nodes joined")


def test_a_node_that_never_came_is_named() -> None:
    found = judged(facts(0), facts(2))
    assert found.status is Verdict.FAIL
    assert [(c.kind, c.id, c.cause) for c in found.culprits] == [("node", "1", Cause.NEVER_JOINED)]
    assert found.next_action is not None
    assert found.measured is not None
    assert found.measured.detail["missing"] == [1]


def test_a_node_whose_image_is_still_pulled_is_not_accused() -> None:
    items = [*lines(), hello(facts(0), facts(2), wanted=4, starting=[1])]
    found = world.nodes(plan(nodes=4), parsed(items))
    assert [c.id for c in found.culprits] == ["3"]  # no address: its pod was never placed
    late = world.nodes(plan(nodes=3), parsed([*lines(), hello(facts(0), facts(2), wanted=3, starting=[1])]))
    assert (late.status, late.culprits) == (Verdict.INCONCLUSIVE, ())
    assert "node 1" in late.message and late.next_action


def test_the_pod_of_another_node_is_found_by_the_name_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"smoke-a-0-1.smoke-a.ns.svc": "10.0.0.2"}
    monkeypatch.setattr(host, "resolve", known.get)
    first = "smoke-a-0-0.smoke-a.ns.svc"
    assert [node_facts.has_address(first, node) for node in (1, 2)] == [True, False]
    assert not node_facts.has_address("10.0.0.1", 1)


@pytest.mark.parametrize(
    ("third", "cause", "words"),
    [
        ({"plan_nodes": 4, "plan_sha256": "x"}, Cause.WRONG_WORLD_SIZE, "a plan for 4 nodes"),
        (
            {"plan_ranks_per_node": None, "plan_sha256": "x"},
            Cause.WRONG_WORLD_SIZE,
            "as many ranks as there are",
        ),
        ({"ranks": 2}, Cause.WRONG_WORLD_SIZE, "starts 2 ranks (2 CPUs, 0 GPUs), the others 1"),
        ({"plan_sha256": "x" * 64}, Cause.MISMATCH, "plan of node 2 is xxxxxxxxxxxx, of the others d0"),
        ({"code_sha256": "c1"}, Cause.MISMATCH, "code of node 2 is c1, of the others c0"),
        ({"gpus": 7, "ranks": 7}, Cause.MISMATCH, "number of GPUs of node 2 is 7, of the others 0"),
        ({"driver": "550.54.15"}, Cause.MISMATCH, "GPU driver of node 2 is 550.54.15, of the others None"),
        ({"torch": "2.9.0"}, Cause.MISMATCH, "torch of node 2 is 2.9.0"),
        ({"rdma": ["efa_0"]}, Cause.MISMATCH, "number of RDMA devices of node 2 is 1"),
        (
            {"environment": {"NCCL_ALGO": "aa"}},
            Cause.MISMATCH,
            "variable NCCL_ALGO has another value on node 2",
        ),
    ],
)
def test_what_differs_is_named(third: dict[str, Any], cause: Cause, words: str) -> None:
    found = judged(*three(**third))
    assert found.status is Verdict.FAIL
    assert {(c.kind, c.id, c.node, c.cause) for c in found.culprits} == {("node", "2", "smoke-ab-2", cause)}
    assert words in found.message


def test_most_nodes_are_right_even_against_node_0() -> None:
    found = judged(facts(0, plan_nodes=4, plan_sha256="x"), facts(1), facts(2))
    assert [(c.id, c.cause) for c in found.culprits] == [("0", Cause.WRONG_WORLD_SIZE)]


def test_among_two_that_differ_node_0_is_right() -> None:
    pair = [facts(0), facts(1, torch="2.9.0")]
    for joined in (pair, pair[::-1]):
        assert [c.id for c in judged(*joined, wanted=2).culprits] == ["1"]


def test_a_node_too_many_and_a_number_given_twice_are_wrong_sizes() -> None:
    extra = judged(*three(), facts(3))
    assert [(c.id, c.cause) for c in extra.culprits] == [("3", Cause.WRONG_WORLD_SIZE)]
    twice = judged(*three(), facts(2, host="another"))
    assert [(c.id, c.cause) for c in twice.culprits] == [("2", Cause.WRONG_WORLD_SIZE)]
    assert "2 launchers" in twice.message


def test_what_differs_by_design_is_no_difference() -> None:
    hosts = [facts(node, environment={"NCCL_HOSTID": str(node)}, kernel=f"6.{node}") for node in range(3)]
    assert judged(*hosts).status is Verdict.PASS


def test_a_rail_that_a_node_lacks_is_a_dead_rail() -> None:
    nics = [{"name": name, "state": "up", "gbit_s": None} for name in ("eth0", "eth1")]
    joined = [facts(0, nics=nics), facts(1, nics=nics[:1]), facts(2, nics=nics)]
    found = judged(*joined, rails=["eth0", "eth1"], rail_gbit_s=1.0)
    assert [(c.kind, c.id, c.cause) for c in found.culprits] == [("nic", "1/eth1", Cause.DEAD_RAIL)]


def test_a_node_without_its_gpus_is_named_among_others() -> None:
    items = [
        *lines(),
        {**CPU, "device": "cuda", "device_forced": False, "devices_found": 8},
        hello(facts(0, gpus=8, device="cuda"), facts(1, gpus=7, device="cuda")),
    ]
    result = verdict.judge(plan(), parsed(items))
    found = next(check for check in result.checks if check.id == "preflight.devices")
    assert found.status is Verdict.FAIL
    assert "7 GPUs" in found.message and "node 1" in found.message
    assert [(c.kind, c.id) for c in found.culprits] == [("node", "1")]


def test_without_a_hello_there_is_no_pass() -> None:
    result = verdict.judge(plan(), evidence.Evidence())
    found = next(check for check in result.checks if check.id == "preflight.nodes")
    assert found.status is Verdict.ERROR


def locked(*limits: int | None, **changes: Any) -> Check:
    """Nodes on accelerators whose processes may lock so much memory."""
    joined = [facts(node, device="cuda", gpus=8, lockable_bytes=limit) for node, limit in enumerate(limits)]
    return world.memory_lock(plan(**changes), parsed([hello(*joined)]))


def test_memory_that_may_not_be_locked_names_the_node_before_a_rank_starts() -> None:
    assert locked(None, None).status is Verdict.PASS
    found = locked(None, 8 << 20)
    assert found.status is Verdict.FAIL
    assert [(item.kind, item.id) for item in found.culprits] == [("node", "1")]
    assert "8192 KiB" in found.message
    assert "LimitMEMLOCK" in str(found.next_action)
    some = locked(None, 1 << 30)
    assert (some.status, some.required, some.culprits) == (Verdict.INCONCLUSIVE, True, ())


def test_memory_is_locked_only_for_rdma_adapters() -> None:
    assert locked(64 << 10, 64 << 10, fabric="tcp").status is Verdict.SKIPPED
    cpus = [facts(node, lockable_bytes=64 << 10) for node in (0, 1)]
    found = world.memory_lock(plan(), parsed([hello(*cpus)]))
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
