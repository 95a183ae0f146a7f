"""Cloud Control: resources by the name of their CloudFormation type, here those of AWS PCS.

`properties` has what the service adds to the desired state. Source: AWS CloudFormation Template Reference,
AWS::PCS::Cluster, AWS::PCS::ComputeNodeGroup and AWS::PCS::Queue (attributes of Fn::GetAtt); endpoints and
ports: botocore 1.44.5 pcs/2023-02-10 (Endpoint), Slurm's default ports. A change of the desired state leaves
them unknown until the update is done (resource.go, `ComputedIf`).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.aws.desired_states import CLUSTER, GROUP, QUEUE, RESOURCE, state_of
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks, refuse
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record

# Segments of ARNs: Service Authorization Reference, AWS Parallel Computing Service.
_SEGMENTS: Final = {CLUSTER: "cluster", GROUP: "computenodegroup", QUEUE: "queue"}


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    state, kind = state_of(inputs), str(inputs.get("typeName"))
    if state is None:
        return {}
    if not site.preview:
        _refuse_taken(site, kind, state)
    return {"properties": json.dumps(_whole(site, kind, str(outputs.get("id") or seed), state))}


def _refuse_taken(site: Site, kind: str, state: Mapping[str, Any]) -> None:
    """Refuse the name of another cluster, or of a group or queue of the cluster, also of one to be replaced.

    Source: botocore 1.44.5 pcs/2023-02-10 service-2.json (ConflictException).
    """
    for one in site.all(RESOURCE):
        other = state_of(one.inputs) or {}
        same = all(state.get(name) == other.get(name) for name in ("Name", "ClusterId"))
        if one.inputs.get("typeName") == kind and state.get("Name") and same:
            text = f"{kind} {state['Name']} already exists"
            raise refuse("ConflictException", text, "", "Choose another name, or delete the old one first.")


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
