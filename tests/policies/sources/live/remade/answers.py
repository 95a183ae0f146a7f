"""Answers of AWS APIs for services without an emulation, made from recorded resources.

Made of what a state has, in the shapes of the service's model.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

from tests.policies.sources.live.remade.account import Keeper, Maker, Props, Remade
from tests.policies.sources.live.remade.modelled import Names, reported
from tests.trainstack.collect.cloud import Answer

Rows = Sequence[tuple[Props, dict[str, str]]]


def _tag_id(one: Props) -> str:
    return f"{one['autoscalingGroupName']},{one['tag']['key']}"


def _group_of_cluster(remade: Remade, one: Props) -> None:
    """EKS makes a security group with each cluster, to which a program may add rules."""
    network = one.get("vpcConfig") or {}
    if "clusterSecurityGroupId" in network and "vpcId" in network:
        given: dict[str, Any] = {
            "GroupName": f"eks-cluster-sg-{one['name']}-1",
            "Description": "EKS created security group",
        }
        made = remade.call("ec2.CreateSecurityGroup", {}, VpcId=network["vpcId"], **given)["GroupId"]
        remade.label(made, {"aws:eks:cluster-name": one["name"]})
        remade.ids[network["clusterSecurityGroupId"]] = made


MAKERS: Mapping[str, Maker] = {
    "aws:autoscaling/tag:Tag": Keeper("tag", _tag_id),
    "aws:ec2/capacityReservation:CapacityReservation": Keeper("reservation"),
    "aws:ec2/placementGroup:PlacementGroup": Keeper("placement"),
    "aws:efs/backupPolicy:BackupPolicy": Keeper("backup"),
    "aws:eks/accessEntry:AccessEntry": Keeper("entry"),
    "aws:eks/addon:Addon": Keeper("addon"),
    "aws:eks/capability:Capability": Keeper(
        "capability", lambda one: f"{one['clusterName']},{one['capabilityName']}"
    ),
    "aws:eks/cluster:Cluster": Keeper("cluster", made=_group_of_cluster),
    "aws:eks/nodeGroup:NodeGroup": Keeper("nodes"),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Keeper("identity"),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": Keeper("link"),
}


def said(remade: Remade) -> dict[str, Answer]:
    """By operation: the answer, where the emulation has none."""
    return {
        name: partial(answer, remade.renamed(remade.rows.get(kind, ())))
        for name, (kind, answer) in {**_EKS, **_ELSEWHERE}.items()
    }


_Teller = Callable[[Rows, Mapping[str, Any]], tuple[int, Any]]


def _steps(params: Mapping[str, Any]) -> list[str]:
    """Of `/clusters/CLUSTER/KIND/ID`."""
    return [unquote(step) for step in params["url_path"].strip("/").split("/")]


def _named(under: str, key: str, summary: str = "") -> _Teller:
    """Lists what is in a cluster: its names, or objects that have them in the field `summary`."""

    def respond(rows: Rows, params: Mapping[str, Any]) -> tuple[int, Any]:
        names = [one[key] for one, _ in rows if one["clusterName"] == _steps(params)[1]]
        return 200, {under: [{summary: name} for name in names] if summary else names}

    return respond


def _described(under: str, shape: str, key: str, names: Names | None = None) -> _Teller:
    """Describes one thing in a cluster."""

    def respond(rows: Rows, params: Mapping[str, Any]) -> tuple[int, Any]:
        _, cluster, _, name = _steps(params)
        ((found, tags),) = [row for row in rows if (row[0]["clusterName"], row[0][key]) == (cluster, name)]
        return 200, {under: {**reported("eks", shape, found, names), "tags": tags}}

    return respond


def _clusters(rows: Rows, _: Mapping[str, Any]) -> tuple[int, Any]:
    return 200, {"clusters": [one["name"] for one, _ in rows]}


def _cluster(rows: Rows, params: Mapping[str, Any]) -> tuple[int, Any]:
    ((found, tags),) = [row for row in rows if row[0]["name"] == _steps(params)[1]]
    logs = [{"types": found.get("enabledClusterLogTypes") or [], "enabled": True}]
    made = reported("eks", "Cluster", found, {"resourcesVpcConfig": "vpcConfig"})
    return 200, {"cluster": {**made, "logging": {"clusterLogging": logs}, "tags": tags}}


_EKS: Mapping[str, tuple[str, _Teller]] = {
    "eks.ListClusters": ("cluster", _clusters),
    "eks.DescribeCluster": ("cluster", _cluster),
    "eks.ListNodegroups": ("nodes", _named("nodegroups", "nodeGroupName")),
    "eks.DescribeNodegroup": (
        "nodes",
        _described(
            "nodegroup", "Nodegroup", "nodeGroupName", {"nodeRole": "nodeRoleArn", "subnets": "subnetIds"}
        ),
    ),
    "eks.ListAddons": ("addon", _named("addons", "addonName")),
    "eks.DescribeAddon": ("addon", _described("addon", "Addon", "addonName")),
    "eks.ListAccessEntries": ("entry", _named("accessEntries", "principalArn")),
    "eks.DescribeAccessEntry": ("entry", _described("accessEntry", "AccessEntry", "principalArn")),
    "eks.ListCapabilities": ("capability", _named("capabilities", "capabilityName", "capabilityName")),
    "eks.DescribeCapability": ("capability", _described("capability", "Capability", "capabilityName")),
    "eks.ListPodIdentityAssociations": (
        "identity", _named("associations", "associationId", "associationId")
    ),
    "eks.DescribePodIdentityAssociation": (
        "identity", _described("association", "PodIdentityAssociation", "associationId")
    ),
}  # fmt: skip


def _all(under: str, service: str, shape: str, names: Names | None = None, **more: str) -> _Teller:
    """Returns all items at once."""

    def respond(rows: Rows, _: Mapping[str, Any]) -> tuple[int, Any]:
        return 200, {under: [
            {
                **reported(service, shape, one, names),
                **more,
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
            for one, tags in rows
        ]}  # fmt: skip

    return respond


def _tags(rows: Rows, _: Mapping[str, Any]) -> tuple[int, Any]:
    names = {"ResourceId": "autoscalingGroupName"}
    return 200, {
        "Tags": [reported("autoscaling", "TagDescription", {**one, **one["tag"]}, names) for one, _ in rows]
    }


def _backup(rows: Rows, params: Mapping[str, Any]) -> tuple[int, Any]:
    found = [one["backupPolicy"] for one, _ in rows if one["fileSystemId"] in params["url_path"]]
    if not found:
        return 404, {"Error": {"Code": "PolicyNotFound", "Message": "none"}}
    return 200, {"BackupPolicy": reported("efs", "BackupPolicy", found[0])}


def _subscribers(rows: Rows, params: Mapping[str, Any]) -> tuple[int, Any]:
    asked = json.loads(params["body"])
    return 200, {"Subscribers": [
        subscriber
        for note, _ in rows
        if all(note[name] == asked[name] for name in ("BudgetName", "Notification"))
        for subscriber in note["Subscribers"]
    ]}  # fmt: skip


_ELSEWHERE: Mapping[str, tuple[str, _Teller]] = {
    "autoscaling.DescribeTags": ("tag", _tags),
    "budgets.DescribeSubscribersForNotification": ("subscribers", _subscribers),
    "ec2.DescribeCapacityReservations": (
        "reservation",
        _all(
            "CapacityReservations", "ec2", "CapacityReservation",
            {"CapacityReservationId": "$id", "TotalInstanceCount": "instanceCount"},
            ReservationType="default", State="active",
        ),
    ),
    "ec2.DescribePlacementGroups": (
        "placement",
        _all("PlacementGroups", "ec2", "PlacementGroup", {"GroupName": "name"}, State="available"),
    ),
    "efs.DescribeBackupPolicy": ("backup", _backup),
    "fsx.DescribeDataRepositoryAssociations": (
        "link", _all("Associations", "fsx", "DataRepositoryAssociation", Lifecycle="AVAILABLE")
    ),
}  # fmt: skip
