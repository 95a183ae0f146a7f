"""AdmissionChecks of jobs that have quota, before they start (kueue.x-k8s.io/v1beta2)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.clusters.dispatch import CHECK as SENT
from agents.gpu_ledger.check import CHECK, CONTROLLER
from agents.shared.kueue import VERSION
from components.kubernetes.capacity.args import window_check
from components.kubernetes.queueing.quotas import GPU, FlavorArgs, TeamArgs
from infra.naming import flavor_name

# Controller of the windows of pools: `agents.capacity_windows.controller`.
KEEPER = "trainstack.dev/capacity-window"
MOST_CLUSTERS = 20  # kueue v0.19.2 apis/kueue/v1beta2/multikueue_types.go, `MultiKueueConfigSpec`

Body = dict[str, Any]


def checks(args: Sequence[FlavorArgs], teams: Sequence[TeamArgs]) -> Iterator[Body]:
    """The AdmissionChecks of flavors, with the objects that they refer to, and of budgets of teams.

    A class of ProvisioningRequests makes queues request all nodes of a job at once. Only pods with GPUs
    count: other pods of a job start anywhere. A failed request is retried for hours, because scarce nodes may
    become available later. The job keeps its quota while a request is pending and during the pause after it
    failed; then it is evicted, and queued by the time of that (kueue v0.19.2 pkg/workload/workload.go,
    `GetQueueOrderTimestamp`). The failure after the last retry deactivates it.
    """
    for name in dict.fromkeys(_classes(args).values()):
        config = check_name(name)
        retries = {"backoffLimitCount": 20, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}
        yield {
            **_head("ProvisioningRequestConfig", config),
            "spec": {"provisioningClassName": name, "managedResources": [GPU], "retryStrategy": retries},
        }
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": config}
        controller = "kueue.x-k8s.io/provisioning-request"
        yield {
            **_head("AdmissionCheck", config),
            "spec": {"controllerName": controller, "parameters": parameters},
        }
    for flavor in args:
        if "window" in flavor:
            yield {
                **_head("AdmissionCheck", window_check(flavor["name"])),
                "spec": {"controllerName": KEEPER},
            }

    if any(map(is_budgeted, teams)):
        yield {**_head("AdmissionCheck", CHECK), "spec": {"controllerName": CONTROLLER}}


def is_budgeted(team: TeamArgs) -> bool:
    """Return whether the queues of a team use the check of its budget."""
    return team.get("budgeted", False)


def check_name(provisioning_class: str) -> str:
    """The AdmissionCheck of a class of ProvisioningRequests."""
    return f"nodes-{provisioning_class.replace('.', '-')}"


def strategy(args: Sequence[FlavorArgs], *, budgeted: bool = False) -> Body:
    """The part of a ClusterQueue that lists the checks by flavor; empty without checks."""
    classes = _classes(args)
    flavors = {
        check_name(one): [flavor_name(name) for name, other in classes.items() if other == one]
        for one in dict.fromkeys(classes.values())
    }
    flavors |= {
        window_check(flavor["name"]): [flavor_name(flavor["name"])] for flavor in args if "window" in flavor
    }
    found: list[Body] = [{"name": CHECK}] if budgeted else []
    found += [{"name": name, "onFlavors": names} for name, names in flavors.items()]
    return {"admissionChecksStrategy": {"admissionChecks": found}} if found else {}


def connections(clusters: Sequence[str]) -> Iterator[list[Body]]:
    """The connections to clusters to which this one sends jobs, in layers; the Secret has the cluster's name.

    The order is of no use to the dispatcher, which obeys the flavor of a job (`agents.clusters.dispatch`).
    """
    names = list(clusters)
    if len(names) > MOST_CLUSTERS:
        raise ValueError(f"{len(names)} clusters; Kueue connects at most {MOST_CLUSTERS}")
    yield [{**_head("MultiKueueCluster", name), "spec": _source(name)} for name in names]
    yield [{**_head("MultiKueueConfig", SENT), "spec": {"clusters": names}}]
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": SENT}
    spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    yield [{**_head("AdmissionCheck", SENT), "spec": spec}]


def sent(queue: Body) -> Body:
    """A ClusterQueue whose jobs run on another cluster; Kueue accepts this check only for all flavors."""
    spec = dict(queue["spec"])
    others = spec.get("admissionChecksStrategy", {}).get("admissionChecks", [])
    spec["admissionChecksStrategy"] = {"admissionChecks": [*others, {"name": SENT}]}
    return {**queue, "spec": spec}


def _source(secret: str) -> Body:
    return {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": secret}}}


def _classes(args: Sequence[FlavorArgs]) -> Mapping[str, str]:
    return {each["name"]: each["provisioning_class"] for each in args if "provisioning_class" in each}


def _head(kind: str, name: str) -> Body:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}}
