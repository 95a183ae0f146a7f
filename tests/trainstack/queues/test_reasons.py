"""Reasons why jobs wait, from messages of Kueue 0.19.2 (as in tests/cluster/queues) and from nodes."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from agents.queued_jobs.reasons import Reason
from tests.trainstack.queues.samples import NOW, POOL, condition, hours, job, queue, refused, running, state
from trainstack.queues.pools import Capacity
from trainstack.queues.positions import places
from trainstack.queues.reasons import reason
from trainstack.queues.state import AdmissionCheck, Flavor, Job, LocalQueue, Node, Pod, State

UNUSED = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100"
)
EXCEEDS = (
    "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, "
    "previously considered podsets requests (0) + current podset request (24) > maximum capacity (16)"
)
APART = 'couldn\'t assign flavors to pod set main: topology "network-1" allows to fit only 1 out of 2 pod(s)'


def why(one: Job, *others: Job, **more: Any) -> Reason:
    return of(state([one, *others], **more), one)


def figures(said: Reason) -> tuple[str, list[int]]:
    return said.kind, [int(number) for number in re.findall(r"\b\d+\b", said.text)]


def of(made: State, one: Job) -> Reason:
    return reason(one, Capacity(made), places(made))


def test_quota_is_given_in_gpus_of_each_pool() -> None:
    said = why(job("c", conditions=refused(f"{UNUSED}, 4 more needed")), running("a"), running("b", gpus=4))
    assert figures(said) == ("quota", [8, 4, 16])


def test_more_than_there_is_never_fits() -> None:
    said = why(job("c", gpus=8, pods=3, conditions=refused(EXCEEDS)))
    assert figures(said) == ("never fits", [24, 16])


def test_a_borrowing_limit_differs_from_quota() -> None:
    limited = [queue("red", 8, limit=Decimal(0)), queue("blue", 8)]
    whole = why(job("c", gpus=8, pods=2, conditions=refused(EXCEEDS)), queues=limited)
    assert figures(whole) == ("borrowing limit", [16, 8, 16])
    words = refused(f"{UNUSED}, 8 more needed")
    now = why(job("c", conditions=words), running("a"), queues=limited)
    assert figures(now) == ("borrowing limit", [8, 0, 8])


def test_gpus_that_are_free_on_too_many_nodes_are_fragmented() -> None:
    # Three nodes with eight GPUs: each has four left.
    busy = [running(f"b{index}", "blue", 4) for index in range(3)]
    pods = tuple(Pod(one.namespace, one.workload, f"n{index}", 4) for index, one in enumerate(busy))
    starting = replace(running("c"), conditions={"Admitted": condition(), "QuotaReserved": condition()})
    waiting = Pod("red", "job-c", "", 8)
    queues = [queue("red", 12), queue("blue", 12)]
    made = state([starting, *busy], gpus=(8, 8, 8), queues=queues, pods=(*pods, waiting))
    assert figures(of(made, starting)) == ("fragmentation", [12, 4, 8])
    # Where the pool can still grow, a node comes.
    larger = state([starting, *busy], gpus=(8, 8, 8), queues=[queue("red", 99)], pods=(*pods, waiting))
    assert figures(of(larger, starting)) == ("nodes booting", [1])
    # The same in the words of a pool with a topology.
    apart = job("d", conditions=refused(APART))
    same = of(state([apart, *busy], gpus=(8, 8, 8), queues=queues, pods=pods), apart)
    assert same.text == of(made, starting).text


def test_nodes_that_are_free_and_far_apart_are_a_matter_of_topology() -> None:
    said = why(job("c", pods=2, conditions=refused(APART)))
    assert said.kind == "topology" and "16 GPUs" in said.text


def test_nodes_without_the_labels_of_their_topology_are_named_with_the_label() -> None:
    """As in a reservation that is not dense."""
    block, host = "cloud.google.com/gce-topology-block", "kubernetes.io/hostname"
    flavors = {POOL: Flavor(POOL, {"pool": POOL}, topology="network")}
    waiting = job("c", pods=2, conditions=refused(APART))

    def said(*labels: str) -> str:
        nodes = [Node(f"n{one}", {"pool": POOL, **dict.fromkeys(labels, "x")}, 8) for one in range(2)]
        levels = {"network": (block, host)}
        return of(state([waiting], flavors=flavors, topologies=levels, nodes=tuple(nodes)), waiting).text

    assert block in said(host) and POOL in said(host)
    assert "16 GPUs" in said(host, block)


def test_pods_with_nodes_are_starting() -> None:
    starting = replace(running("c"), conditions={"Admitted": condition(), "QuotaReserved": condition()})
    assert why(starting).kind == "starting"
    assert why(starting, nodes=(), pods=(Pod("red", "job-c", "", 8),)).kind == "nodes booting"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("ClusterQueue red is stopped", "stopped"),
        ("LocalQueue default is inactive", "stopped"),
        (f"{UNUSED}, 8 more needed. Pending the preemption of 1 workload(s)", "preempting"),
        ("couldn't assign flavors to pod set main: untolerated taint x in flavor a100", "no matching pool"),
        (
            "couldn't assign flavors to pod set main: flavor a100 doesn't match node affinity",
            "no matching pool",
        ),
        (
            "couldn't assign flavors to pod set main: resource x unavailable in ClusterQueue",
            "unknown resource",
        ),
        ("words of a Kueue to come", "other"),
    ],
)
def test_other_messages_of_kueue(words: str, kind: str) -> None:
    said = why(job("c", conditions=refused(words)))
    assert said.kind == kind and (kind == "preempting" or said.text == words)


def test_a_job_that_another_cluster_has_not_started_names_the_cluster() -> None:
    pending = (AdmissionCheck("clusters", "Pending", ""),)
    held = replace(running("a"), conditions={"QuotaReserved": condition()})
    said = why(replace(held, checks=pending, sent=("usw2",)))
    assert said.kind == "admission check" and "usw2" in said.text


def test_reasons_without_a_condition() -> None:
    assert why(job("a"), job("b", created=NOW)).kind == "other"
    assert figures(why(job("b", created=NOW), job("a"))) == ("behind others", [1])
    assert why(job("a"), queues=[queue("red", 8, stopped=True)]).kind == "stopped"
    assert why(job("a"), local_queues=(LocalQueue("red", "default", "red", stopped=True),)).kind == "stopped"
    assert why(job("a", requeued_at=NOW + hours(0.5))).text.endswith("at 12:30 UTC")
    assert why(job("a", active=False)).kind == "deactivated"
    over = (AdmissionCheck("gpu-budget", "Pending", "over budget: 80 of 100 hours are left"),)
    assert why(job("a", active=False, checks=over)) == Reason("over budget", "80 of 100 hours are left")
    away = "window-a100: the pool opens at 2026-12-01 11:30 UTC"
    closed = Reason("pool closed", "the pool opens at 2026-12-01 11:30 UTC")
    assert why(job("a", active=False, away=away)) == closed
    # A message of an earlier attempt is no reason of this one.
    reset = (AdmissionCheck("gpu-budget", "Pending", "Reset to Pending after eviction. Previously: Ready"),)
    evicted = replace(condition(), reason="DeactivatedDueToRequeuingLimitExceeded")
    limit = {"Evicted": evicted, "Requeued": replace(evicted, true=False)}
    assert why(job("a", active=False, checks=reset, conditions=limit)).kind == "requeue limit"
    # Queued again since, and then stopped by an administrator: Kueue leaves Evicted as it was.
    stopped = {**limit, "Requeued": replace(evicted, reason="Reactivated")}
    assert why(job("a", active=False, conditions=stopped)).kind == "deactivated"
    held = replace(running("a"), conditions={"QuotaReserved": condition()})
    checked = replace(
        held, checks=(AdmissionCheck("nodes", "Pending", "no capacity"), AdmissionCheck("x", "Ready", ""))
    )
    assert why(checked) == Reason("admission check", "nodes is Pending: no capacity")


def test_a_job_that_asks_for_the_same_as_one_that_was_refused_waits_for_the_same() -> None:
    first = job("first", gpus=4, conditions=refused(f"{UNUSED}, 4 more needed"))
    busy = (running("a"), running("b"))
    same = why(job("second", gpus=4, created=NOW), first, *busy)
    assert same == why(first, *busy) and figures(same) == ("quota", [4, 0, 16])
    assert why(job("other", gpus=2, created=NOW), first, *busy).kind == "behind others"


def test_who_may_not_see_the_queues_gets_kueues_own_words() -> None:
    one = job("c", conditions=refused(f"{UNUSED}, 8 more needed"))
    assert why(one, cluster_queues=None) == Reason("quota", f"{UNUSED}, 8 more needed")
    apart = job("d", conditions=refused(APART))
    made = replace(state([apart]), whole=False)
    assert of(made, apart) == Reason("topology", APART.partition("main: ")[2])


def test_a_pool_has_quota_and_nodes() -> None:
    made = state([running("a", gpus=4), job("b", gpus=8)], nodes=(Node("n0", {"pool": POOL}, 8),))
    pool = Capacity(made).pools[POOL]
    assert (pool.gpus, pool.used, pool.free) == (16, 4, 12)
    assert (pool.nodes, pool.on_nodes, pool.free_on_nodes, pool.largest_free) == (1, 8, 4, 4)
    # One pod of two, that with eight GPUs, cannot use the four; it asks for 8 of 12 GPUs.
    assert pool.fragmentation == 0.5 and pool.stranded == pytest.approx(8 / 12)
    unseen = Capacity(replace(made, whole=False)).pools[POOL]
    assert (unseen.nodes, unseen.on_nodes, unseen.largest_free, unseen.fragmentation) == (1, 8, None, None)
