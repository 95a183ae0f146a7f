"""Shares of GPUs on the real Kueue: a queue of their own, guarantees in shares, lent and taken back."""

from collections.abc import Iterator

import pytest

from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.quotas import FlavorArgs, TeamArgs
from rehearsal.controlplane.api import ApiError, KubernetesApi
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.more
POOL, TURNS = "notebooks", 4
# One L4 per node, four turns each: eight shares.
SHARED: FlavorArgs = {
    **flavor(POOL, "g6.2xlarge", 2, usd_per_hour=0.39),
    "gpus": TURNS,
    "gpus_per_pod": 1,
    "shared": True,
    "own_queue": True,
}
WHOLE = flavor("l4", "g6.2xlarge", 1, usd_per_hour=0.39)
MACHINES = {POOL: "g6.2xlarge", "l4": "g6.2xlarge"}
TEAMS: list[TeamArgs] = [
    {"name": "Research", "weight": 1, "gpus": {POOL: 5, "l4": 1}},
    {"name": "Vision", "weight": 1, "gpus": {POOL: 3}},
]


@pytest.fixture(scope="module")
def lab(api: KubernetesApi) -> Iterator[Lab]:
    pools = [SHARED, WHOLE]
    with machines(api, pools, MACHINES), queues(api, pools, TEAMS, fits=True) as found:
        yield found


@pytest.fixture(autouse=True)
def _empty(lab: Lab) -> Iterator[None]:
    yield
    for name in [*lab.jobs]:
        lab.finish(name)
    eventually(
        lambda: not any(lab.api.list("v1", "Pod", one) for one in lab.namespaces.values()), "no pod is left"
    )


def session(lab: Lab, team: str, name: str, *, gpus: int = 1, pods: int = 1) -> str:
    """A session on a share, in the queue of the pool."""
    lab.submit(team, name, gpus=gpus, pods=pods, cpu="100m", labels={QUEUE_NAME_LABEL: POOL})
    return name


def test_a_share_is_lent_and_taken_back_and_a_node_holds_as_many_pods_as_turns(lab: Lab) -> None:
    own = [session(lab, "Vision", f"vision-{number}") for number in range(3)]
    lab.runs(*own)
    borrowed = [session(lab, "Vision", f"more-{number}") for number in range(5)]
    lab.runs(*borrowed)
    nodes = [lab.nodes(name)[0] for name in (*own, *borrowed)]
    assert sorted(map(nodes.count, set(nodes))) == [TURNS, TURNS]
    owners = [session(lab, "Research", f"research-{number}") for number in range(5)]
    lab.runs(*owners)
    left = [name for name in (*own, *borrowed) if lab.admitted(name)]
    assert len(left) == 3
    assert sum(lab.evictions(name).get("Preempted", 0) for name in (*own, *borrowed)) == 5
    assert not any(lab.evictions(name) for name in owners)


def test_a_session_takes_no_whole_gpu_and_a_job_no_share(lab: Lab) -> None:
    everyone = [session(lab, "Research", f"session-{number}") for number in range(8)]
    lab.runs(*everyone)
    waits = session(lab, "Research", "ninth")
    lab.refusal(waits)
    lab.submit("Research", "train", gpus=1)
    assert lab.flavor("train") == "l4"
    assert not lab.admitted(waits)


def test_more_shares_than_a_pod_can_have_are_refused_at_once(lab: Lab) -> None:
    with pytest.raises(ApiError, match=f"{POOL} 1"):
        session(lab, "Research", "two", gpus=2)
    wide = session(lab, "Research", "wide", pods=8)
    lab.runs(wide)
    lab.nodes(wide, 8)


def test_more_shares_than_the_pool_has_wait_without_quota(lab: Lab) -> None:
    wider = session(lab, "Research", "wider", pods=9)
    lab.refusal(wider)
    small = session(lab, "Research", "small")
    lab.runs(small)
