"""JobSet and Kubeflow Trainer, with a runtime for every kind of node that trains."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.charts import charts, release
from components.kubernetes.definitions.install import definitions
from components.kubernetes.device_claims import team_template
from components.kubernetes.manifest import Manifest
from components.kubernetes.network_policies import PlatformNetwork, Ports, controllers
from components.kubernetes.offers import NodeOffer, claimed, devices
from components.kubernetes.runtime_names import POOL_RUNTIME
from components.kubernetes.waiting.webhooks import DryRun, webhooks_answer
from components.ordering import after
from infra.launchers import kubeflow
from infra.launchers.runplan import RunPlan, shared_memory

JOBSET_PORTS = Ports(api_server=(9443,), metrics=(8443,))
# Nothing reports to its server of states (10443): that feature, TrainJobStatus, is off.
PORTS = Ports(api_server=(9443,), metrics=(8443,))
CHART, NAME = "kubeflow-trainer", "trainer-ready"
# A TrainJob declares its own time limit, and its pods' resources where its runtime does not.
_PLAN = RunPlan(
    name=kubeflow.RUNTIME,
    image="",
    command=(),
    nodes=1,
    cpu=1,
    memory_gib=1,
    timeout_s=1,
    checkpoint_policy=True,
)
JOBSET_VALUES: Mapping[str, Any] = {
    "controller": {"replicas": 2, "podDisruptionBudget": {"enabled": True, "minAvailable": 1}}
}
VALUES: Mapping[str, Any] = {
    # In the version that it requires; ours is the one that Kueue is built with.
    "jobset": {"install": False},
    "manager": {
        "replicas": 2,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
    },
}


class TrainerArgs(TypedDict):
    """Arguments of `Trainer`."""

    pools: Mapping[str, NodeOffer]
    """Resources of a node of each pool, by the pool's name."""
    machines: NotRequired[Mapping[str, Sequence[str]]]
    """Pools of one machine type behind the same queues, by the type. Default: none."""
    image: str
    """Image, by digest, of TrainJobs without one."""
    ready_image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run: of the pod that waits for webhooks."""
    control_plane: PlatformNetwork
    """Paths by which the API server calls webhooks."""


class Trainer(Component):
    """JobSet, for runs on several nodes, and Kubeflow Trainer v2, which creates JobSets from TrainJobs.

    A TrainJob on the runtime `torch-POOL` takes whole nodes of that pool, and on `torch-MACHINE` whole nodes
    of the pool with that machine type that its queue chooses. One on `torch-distributed`, as rendered by the
    launchers, declares its resources itself.

    Kueue comes after this: it discovers the kinds of jobs at its start. So do the namespaces of jobs: a
    runtime is referenced by every TrainJob that names it, those that ended included, and is deleted later.
    """

    runtimes: pulumi.Output[list[str]]
    """Names of the ClusterTrainingRuntimes."""

    def __init__(self, name: str, args: TrainerArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        chart = charts()[CHART]
        server = args["control_plane"]
        of_jobset = self._inside(name, "jobset", JOBSET_PORTS, server)
        image = args["ready_image"]
        jobset = self._installed(name, "jobset", JOBSET_VALUES, image, of_jobset)
        inside = self._inside(name, CHART, PORTS, server)
        # It discovers JobSet's kind at its start.
        installed = self._installed(name, CHART, VALUES, image, inside, first=[jobset])
        bodies = list(runtimes(args["pools"], args["image"], args.get("machines", {})))
        asked = DryRun(
            account=NAME,
            namespace=chart.namespace,
            body=bodies[0],
            plural="clustertrainingruntimes",
            image=image,
            release=(chart.version, json.dumps(VALUES, sort_keys=True)),
        )
        ready = webhooks_answer(f"{name}-ready", asked, installed, inside, self.child)
        answering = self.child(pulumi.ResourceOptions(depends_on=[ready]))
        made = [Manifest(f"{name}-{body['metadata']['name']}", body, answering) for body in bodies]
        names = [body["metadata"]["name"] for body in bodies]
        self.runtimes = after(pulumi.Output.from_input(names), made)
        self.register_declared()

    def _installed(
        self,
        name: str,
        chart: str,
        values: Mapping[str, Any],
        image: pulumi.Input[str],
        inside: pulumi.ResourceOptions,
        *,
        first: Sequence[pulumi.Resource] = (),
    ) -> pulumi.Resource:
        """The release of a chart, after its definitions and the resources `first`."""
        defined = definitions(f"{name}-{chart}-definitions", chart, image, inside, self.child)
        needs = pulumi.ResourceOptions(depends_on=[defined, *first])
        opts = pulumi.ResourceOptions.merge(inside, needs)
        return release(f"{name}-{chart}", chart, values, opts, skip_crds=True)

    def _inside(
        self, name: str, chart: str, ports: Ports, control_plane: PlatformNetwork
    ) -> pulumi.ResourceOptions:
        space = charts()[chart].namespace
        fence = controllers(f"{name}-{chart}", space, ports, control_plane, self.child)
        return self.child(pulumi.ResourceOptions(depends_on=fence))


def runtimes(
    pools: Mapping[str, NodeOffer], image: str, machines: Mapping[str, Sequence[str]] | None = None
) -> Iterator[dict[str, Any]]:
    """The ClusterTrainingRuntimes: one for any node, one for each pool, one for pools of one machine.

    Where pods claim devices, the claim's template has the name of the runtime, in the namespace of each team
    (`components.kubernetes.queueing.queues`). There is no runtime where pods share GPUs: no run trains on
    shares or parts of a node.
    """
    plan = dataclasses.replace(_PLAN, image=image)
    yield kubeflow.runtime(plan, whole_node=False)
    whole = {pool: offer for pool, offer in pools.items() if not offer.get("shared")}
    for pool, offer in whole.items():
        yield _whole_nodes(plan, pool, {pool: offer})
    for machine, members in (machines or {}).items():
        same = {pool: whole[pool] for pool in members if pool in whole}
        if len(same) > 1 and machine not in pools and _alike(list(same.values())):
            yield _whole_nodes(plan, machine, same)


def _alike(offers: Sequence[NodeOffer]) -> bool:
    """Return whether one pod runs on all of these nodes: with the same GPUs, devices and settings."""
    first, *others = ({key: one.get(key) for key in ("gpus", "fabric", "pod")} for one in offers)
    return all(one == first for one in others)


def _whole_nodes(plan: RunPlan, name: str, pools: Mapping[str, NodeOffer]) -> dict[str, Any]:
    """The runtime for whole nodes of any of these pools; the queue chooses, in its order of pools."""
    (first, offer), *_ = pools.items()
    fabric, memory = offer.get("fabric"), min(one["memory_gib"] for one in pools.values())
    whole = dataclasses.replace(
        plan,
        name=f"{POOL_RUNTIME}{name}",
        gpus_per_node=offer["gpus"],
        cpu=min(one["cpu"] for one in pools.values()),
        memory_gib=memory,
        devices=devices(fabric),
        device_claims={fabric["kind"]: team_template(first)} if fabric and claimed(fabric) else {},
        mounts=(shared_memory(memory),),
        node_labels={POOL_LABEL: [*pools]},
    )
    return kubeflow.runtime(whole, needs=offer.get("pod"))
