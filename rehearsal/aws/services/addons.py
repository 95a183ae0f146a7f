"""Add-ons of a cluster: those that are Deployments need a node that takes their pods.

Source: hashicorp/terraform-provider-aws internal/service/eks/addon.go (waitAddonCreated waits 20 minutes
through CREATING and DEGRADED); aws/containers-roadmap issues 1389 (only tainted nodes), 2328 (messages)
and 2167 (tolerations of CoreDNS); kubernetes-sigs/aws-ebs-csi-driver charts/aws-ebs-csi-driver/values.yaml.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws import facts
from rehearsal.aws.rules.reading import document
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at
from rehearsal.dataplane.aws.iam_policies import pods_denied, role_record
from rehearsal.workloads.scheduling import Taint, tolerates

_CLUSTER, _GROUP = "eks/cluster:Cluster", "eks/nodeGroup:NodeGroup"
_CRITICAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
_EVICTED_LATER = {"effect": "NoExecute", "operator": "Exists"}
# Add-on -> path of the tolerations in its settings, and its default tolerations.
_DEPLOYMENTS: Mapping[str, tuple[str, tuple[Mapping[str, str], ...]]] = {
    "coredns": ("tolerations", (_CRITICAL, _CONTROL_PLANE)),
    "aws-ebs-csi-driver": ("controller.tolerations", (_CRITICAL, _EVICTED_LATER)),
}
# Machines that may join a cluster without a reference to it.
_MACHINES = (
    "autoscaling/group:Group",
    "ec2/fleet:Fleet",
    "ec2/instance:Instance",
    "ec2/spotFleetRequest:SpotFleetRequest",
    "ec2/spotInstanceRequest:SpotInstanceRequest",
)
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute"}


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    cluster = site.find(inputs.get("clusterName"), _CLUSTER)
    version = cluster.outputs["version"] if cluster else "1.0"
    return {"addonVersion": inputs.get("addonVersion") or addon_version(str(inputs["addonName"]), version)}


def addon_version(name: str, kubernetes: str) -> str:
    """A version in the format of EKS; the current one is unknown offline."""
    return f"v{kubernetes}.0-eksbuild.1" if name in ("kube-proxy",) else "v1.0.0-eksbuild.1"


def _created(site: Site, addon: Record) -> None:
    """Warn about pods that will not get the role of the add-on for their service accounts."""
    cluster = site.find(addon.inputs.get("clusterName"), _CLUSTER)
    role = role_record(site.state, str(addon.inputs.get("serviceAccountRoleArn")))
    known = facts.catalog().eks.addons.get(str(addon.inputs["addonName"]))
    if cluster is None or role is None or known is None:
        return
    for one in known.identities:
        if denied := pods_denied(role, cluster, known.namespace, one.service_account):
            site.call.log("warning", denied)


def _unready(site: Site, addon: Record) -> str:
    name, cluster = str(addon.inputs["addonName"]), site.find(addon.inputs.get("clusterName"), _CLUSTER)
    if name not in _DEPLOYMENTS or cluster is None or _other_machines(site, cluster):
        return ""
    tolerations = _tolerations(name, addon.inputs.get("configurationValues"))
    groups = [one for one in site.all(_GROUP) if one.inputs.get("clusterName") == cluster.id]
    running = [one for one in groups if at(one.inputs, "scalingConfig.desiredSize") != 0]
    if tolerations is None or any(
        all(tolerates(tolerations, taint) for taint in _keeping_off(group)) for group in running
    ):
        return ""
    why = "the cluster has no node"
    if running:
        why = f"each node has a taint that {name} does not tolerate ({', '.join(_taints(running))})"
    return (
        f"waiting for EKS Add-On ({addon.id}) create: timeout while waiting for state to become 'ACTIVE' "
        "(last state: 'DEGRADED', timeout: 20m0s): InsufficientNumberOfReplicas: The add-on is unhealthy "
        f"because it doesn't have the desired number of replicas: {why}. "
        "Let it depend on a node group without taints, or give it tolerations in its configuration values."
    )


def _other_machines(site: Site, cluster: Record) -> bool:
    """Return whether pods may run on Fargate, in Auto Mode, or on machines that join by themselves."""
    fargate = site.all("eks/fargateProfile:FargateProfile")
    return (
        not cluster.urn  # made outside of the rehearsal: its nodes are unknown
        or at(cluster.outputs, "computeConfig.enabled") is True
        or cluster.outputs.get("remoteNetworkConfig") is not None
        or any(one.inputs.get("clusterName") == cluster.id for one in fargate)
        or any(True for token in _MACHINES for _ in site.all(token))
    )


def _tolerations(name: str, settings: Any) -> list[Mapping[str, Any]] | None:
    """Tolerations of an add-on's pods; None where its settings cannot be parsed, such as YAML."""
    path, usual = _DEPLOYMENTS[name]
    if not settings:
        return list(usual)
    found = document(settings)
    given = at(found, path) if isinstance(found, dict) else None
    return None if found is None else given if isinstance(given, list) else list(usual)


def _keeping_off(group: Record) -> Iterator[Taint]:
    for one in group.inputs.get("taints") or ():
        if one.get("effect") in _EFFECTS:
            yield Taint(str(one.get("key")), str(one.get("value") or ""), _EFFECTS[one["effect"]])


def _taints(groups: list[Record]) -> list[str]:
    return list(dict.fromkeys(taint.key for group in groups for taint in _keeping_off(group)))


HOOKS: Mapping[str, Hooks[Site]] = {
    "eks/addon:Addon": Hooks(outputs=_outputs, created=_created, changed=_created, unready=_unready)
}
