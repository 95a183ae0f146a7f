"""EKS: clusters, node groups, add-ons, access entries, pod identities, capabilities.

Shapes: internal/service/eks/{cluster,node_group,addon,access_entry,pod_identity_association,capability}.go of
terraform-provider-aws.
"""

from typing import Any

from policies.sources.live.mapping import Each, LiveKind, One, View, same
from policies.sources.live.queries import ApiQuery


def _parts(listed: str, key: str, described: str, field: str, parameter: str) -> tuple[ApiQuery, ApiQuery]:
    """The queries that list parts of a cluster, and describe each."""
    of = f"eks.{listed}"
    cluster = {"clusterName": "asked.clusterName"}
    return (
        ApiQuery("eks", listed, key, of="eks.ListClusters", by={"clusterName": "it"}),
        ApiQuery("eks", described, field, of=of, by={**cluster, parameter: "it"}),
    )


QUERIES = (
    ApiQuery("eks", "ListClusters", "clusters"),
    ApiQuery("eks", "DescribeCluster", "cluster", of="eks.ListClusters", by={"name": "it"}),
    *_parts("ListNodegroups", "nodegroups", "DescribeNodegroup", "nodegroup", "nodegroupName"),
    *_parts("ListAddons", "addons", "DescribeAddon", "addon", "addonName"),
    *_parts("ListAccessEntries", "accessEntries", "DescribeAccessEntry", "accessEntry", "principalArn"),
    *_parts(
        "ListPodIdentityAssociations", "associations[].associationId", "DescribePodIdentityAssociation",
        "association", "associationId",
    ),
    *_parts(
        "ListCapabilities", "capabilities[].capabilityName", "DescribeCapability", "capability",
        "capabilityName",
    ),
)  # fmt: skip
_CLUSTER = "{asked.clusterName}"


def _encryption(view: View) -> Any:
    """The first of at most one (flattenEncryptionConfig)."""
    rows = view.at("encryptionConfig") or ()
    return next(
        (
            {"provider": {"keyArn": (one.get("provider") or {}).get("keyArn")}, "resources": one["resources"]}
            for one in rows
        ),
        None,
    )


def _logs(view: View) -> Any:
    rows = view.at("logging.clusterLogging") or ()
    return sorted(name for one in rows if one.get("enabled") for name in one.get("types") or ()) or None


_VPC = (
    *("clusterSecurityGroupId", "endpointPrivateAccess", "endpointPublicAccess", "publicAccessCidrs"),
    *("securityGroupIds", "subnetIds", "vpcId"),
)


KINDS = (
    LiveKind(
        "aws:eks/cluster:Cluster",
        "eks.DescribeCluster",
        "{name}",
        {
            **same("arn", "deletionProtection", "endpoint", "name", "platformVersion", "roleArn", "status"),
            "accessConfig": One("accessConfig", same("authenticationMode")),
            "computeConfig": One("computeConfig", same("enabled", "nodePools", "nodeRoleArn")),
            "enabledClusterLogTypes": _logs,
            "encryptionConfig": _encryption,
            "kubernetesNetworkConfig": One(
                "kubernetesNetworkConfig",
                {
                    **same("ipFamily", "serviceIpv4Cidr"),
                    "elasticLoadBalancing": One("elasticLoadBalancing", same("enabled")),
                },
            ),
            "storageConfig": One("storageConfig", {"blockStorage": One("blockStorage", same("enabled"))}),
            "upgradePolicy": One("upgradePolicy", same("supportType")),
            "version": "version",
            "vpcConfig": One("resourcesVpcConfig", same(*_VPC)),
            "zonalShiftConfig": One("zonalShiftConfig", same("enabled")),
        },
        tags="tags",
        when=lambda view: view.at("status") != "DELETING",
    ),
    LiveKind(
        "aws:eks/nodeGroup:NodeGroup",
        "eks.DescribeNodegroup",
        f"{_CLUSTER}:{{nodegroupName}}",
        {
            **same("amiType", "capacityType", "clusterName", "diskSize", "instanceTypes", "labels"),
            **same("releaseVersion", "status", "version"),
            "arn": "nodegroupArn",
            "launchTemplate": One("launchTemplate", same("id", "name", "version")),
            "nodeGroupName": "nodegroupName",
            "nodeRepairConfig": One("nodeRepairConfig", same("enabled")),
            "nodeRoleArn": "nodeRole",
            "remoteAccess": One(
                "remoteAccess",
                {"ec2SshKey": "ec2SshKey", "sourceSecurityGroupIds": "sourceSecurityGroups"},
            ),
            "resources": lambda view: [
                {
                    "autoscalingGroups": [
                        {"name": one.get("name")} for one in view.at("resources.autoScalingGroups") or ()
                    ]
                }
            ],
            "scalingConfig": One("scalingConfig", same("desiredSize", "maxSize", "minSize")),
            "subnetIds": "subnets",
            "taints": Each("taints", same("effect", "key", "value")),
            "updateConfig": One("updateConfig", same("maxUnavailable", "maxUnavailablePercentage")),
        },
        name="{nodegroupName}",
        tags="tags",
        when=lambda view: view.at("status") != "DELETING",
        owner=_CLUSTER,
    ),
    LiveKind(
        "aws:eks/addon:Addon",
        "eks.DescribeAddon",
        f"{_CLUSTER}:{{addonName}}",
        {
            **same(
                "addonName", "addonVersion", "clusterName", "configurationValues", "serviceAccountRoleArn"
            ),
            "arn": "addonArn",
        },
        tags="tags",
        owner=_CLUSTER,
    ),
    LiveKind(
        "aws:eks/accessEntry:AccessEntry",
        "eks.DescribeAccessEntry",
        f"{_CLUSTER}:{{principalArn}}",
        {
            **same("clusterName", "kubernetesGroups", "principalArn", "type"),
            "accessEntryArn": "accessEntryArn",
            "userName": "username",
        },
        tags="tags",
        owner=_CLUSTER,
    ),
    LiveKind(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        "eks.DescribePodIdentityAssociation",
        "{associationId}",
        {
            **same("associationId", "clusterName", "namespace", "roleArn", "serviceAccount"),
            "associationArn": "associationArn",
        },
        tags="tags",
        owner=_CLUSTER,
        imported=f"{_CLUSTER},{{associationId}}",
    ),
    LiveKind(
        "aws:eks/capability:Capability",
        "eks.DescribeCapability",
        f"{_CLUSTER},{{capabilityName}}",
        same("arn", "capabilityName", "clusterName", "deletePropagationPolicy", "roleArn", "type", "version"),
        tags="tags",
        owner=_CLUSTER,
    ),
)
