"""Jobs that ask for one network block get one, and wait where none has room."""

from components.kubernetes.queueing.quotas import TeamArgs
from rehearsal.controlplane.api import KubernetesApi
from tests.cluster.queues.lab import Lab, flavor, machines, queues

LEVELS = [f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3)]
# Eight machines in two blocks of four.
A100 = flavor("a100", "p4d.24xlarge", 8, topology=LEVELS, fixed_size=True)
MACHINES = {"a100": "p4d.24xlarge"}
TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]


def blocks(api: KubernetesApi, lab: Lab, name: str, pods: int) -> set[str]:
    """The blocks in which the pods of a Job run."""
    found = (api.get("v1", "Node", node)["metadata"]["labels"] for node in lab.nodes(name, pods))
    return {labels[LEVELS[-1]] for labels in found}


def near(lab: Lab, name: str, pods: int, how: str = "required") -> None:
    """A Job with one pod a machine, in one block if required, else if possible."""
    lab.submit(
        "Research", name, gpus=8, pods=pods, notes={f"kueue.x-k8s.io/podset-{how}-topology": LEVELS[-1]}
    )


def test_a_job_that_requires_one_block_gets_one_or_waits(api: KubernetesApi) -> None:
    with machines(api, [A100], MACHINES, block=4), queues(api, [A100], TEAM) as lab:
        for name in ("first", "second"):
            near(lab, name, 3)
            assert len(blocks(api, lab, name, 3)) == 1
        # One machine is left in each block: there is quota for two, but no block for both.
        near(lab, "third", 2)
        assert "topology" in lab.refusal("third")
        assert lab.pods("third") == []
        near(lab, "scattered", 2, how="preferred")
        assert len(blocks(api, lab, "scattered", 2)) == 2
        lab.finish("first")
        assert len(blocks(api, lab, "third", 2)) == 1


def test_in_a_shared_queue_only_jobs_that_ask_for_a_level_are_given_such_a_pool(api: KubernetesApi) -> None:
    """Why a stack places by the network only where a pool has a queue of its own (`stacks/topology.py`)."""
    l4 = flavor("l4", "g6.2xlarge", 1)
    a100 = flavor("a100", "p4d.24xlarge", 1, topology=LEVELS, fixed_size=True, preference=-1)
    with machines(api, [a100], MACHINES, block=1), queues(api, [a100, l4], TEAM) as lab:
        lab.submit("Research", "plain", gpus=1)
        assert lab.flavor("plain") == "l4"
        lab.submit("Research", "second", gpus=1)
        assert "supports only TopologyAwareScheduling" in lab.refusal("second")
        near(lab, "asking", 1, how="preferred")
        assert lab.flavor("asking") == "a100"
