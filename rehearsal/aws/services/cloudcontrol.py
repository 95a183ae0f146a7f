"""Cloud Control: resources by the name of their CloudFormation type, here those of AWS PCS.

`properties` has what the service adds to the desired state. Source: AWS CloudFormation Template Reference,
AWS::PCS::Cluster, AWS::PCS::ComputeNodeGroup and AWS::PCS::Queue (attributes of Fn::GetAtt); endpoints and
ports: botocore 1.44.5 pcs/2023-02-10 (Endpoint), Slurm's default ports. A change of the desired state leaves
them unknown until the update is done (resource.go, `ComputedIf`).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks, refuse
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record

RESOURCE: Final = "cloudcontrol/resource:Resource"
CLUSTER, GROUP, QUEUE = "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup", "AWS::PCS::Queue"
# Segments of ARNs: Service Authorization Reference, AWS Parallel Computing Service.
_SEGMENTS: Final = {CLUSTER: "cluster", GROUP: "computenodegroup", QUEUE: "queue"}
# pulumi-aws-native 1.84 sdk/python pcs (`replace_on_changes`), which follows the schemas of CloudFormation.
CREATE_ONLY: Final[Mapping[str, frozenset[str]]] = {
    CLUSTER: frozenset({"Name", "Networking", "Size"}),
    GROUP: frozenset({"ClusterId", "InstanceConfigs", "Name"}),
    QUEUE: frozenset({"ClusterId", "Name"}),
}


def state_of(inputs: Properties) -> Mapping[str, Any] | None:
    """The desired state; None while it is unknown or is no JSON object."""
    text = inputs.get("desiredState")
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def replaced(kind: object, old: Properties, new: Properties) -> bool:
    """Return whether a change of the desired state replaces the resource."""
    before, after = state_of(old), state_of(new)
    if before is None or after is None:
        return False
    return any(before.get(one) != after.get(one) for one in CREATE_ONLY.get(str(kind), ()))


def of_kind(site: Site, kind: str) -> list[Record]:
    """The resources of a type that are visible, oldest first."""
    return [one for one in site.all(RESOURCE) if one.inputs.get("typeName") == kind]


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    state, kind = state_of(inputs), str(inputs.get("typeName"))
    if state is None:
        return {}
    return {"properties": json.dumps(_whole(site, kind, str(outputs.get("id") or seed), state))}


def _whole(site: Site, kind: str, id: str, state: Mapping[str, Any]) -> Mapping[str, Any]:
    if kind not in _SEGMENTS:
        return state
    cluster = id if kind == CLUSTER else str(state.get("ClusterId"))
    path = f"cluster/{cluster}" if kind == CLUSTER else f"cluster/{cluster}/{_SEGMENTS[kind]}/{id}"
    whole = {
        **state,
        "Id": id,
        "Arn": f"arn:aws:pcs:{site.region}:{site.account}:{path}",
        "Status": "ACTIVE",
    }
    if kind == CLUSTER:
        address = f"10.0.{int(draw(f'{id}/net', 2, '123456789'))}.{draw(f'{id}/host', 2, '123456789')}"
        secret = f"arn:aws:secretsmanager:{site.region}:{site.account}:secret:pcs!slurm-secret-{id}"
        whole["Endpoints"] = [
            {"Type": kind, "PrivateIpAddress": address, "Port": port}
            for kind, port in (("SLURMCTLD", "6817"), ("SLURMDBD", "6819"))
        ]
        slurm = {"AuthKey": {"SecretArn": secret, "SecretVersion": "1"}}
        whole["SlurmConfiguration"] = {**state.get("SlurmConfiguration", {}), **slurm}
    return whole


def _updated(site: Site, record: Record, new: Properties) -> Properties:
    state = state_of(new)
    if state is None or new.get("desiredState") == record.inputs.get("desiredState"):
        return {}
    return {"properties": json.dumps(_whole(site, str(new.get("typeName")), record.id, state))}


def _deleting(site: Site, record: Record) -> None:
    """Refuse to delete a cluster with groups or queues, and a group with queues.

    Source: botocore 1.44.5 pcs/2023-02-10 service-2.json (documentation of DeleteCluster and
    DeleteComputeNodeGroup: queues and groups are deleted first).
    """
    kind = record.inputs.get("typeName")
    for one in site.all(RESOURCE):
        state = state_of(one.inputs) or {}
        groups = [
            found.get("ComputeNodeGroupId") for found in state.get("ComputeNodeGroupConfigurations") or ()
        ]
        if (kind == CLUSTER and state.get("ClusterId") == record.id) or (
            kind == GROUP and record.id in groups
        ):
            text = f"{record.id} is still used by {state.get('Name') or one.id}"
            raise refuse("ConflictException", text, "", "Delete queues, then groups, then the cluster.")


HOOKS: Mapping[str, Hooks[Site]] = {
    RESOURCE: Hooks(outputs=_outputs, updated=_updated, volatile=("properties",), deleting=_deleting),
}
