"""EKS clusters, access, add-ons and pod identity. Source: Amazon EKS API Reference and User Guide."""

import base64
import difflib
import re
from collections.abc import Iterator

from infra.rehearsal.aws import facts
from infra.rehearsal.aws.naming import draw
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties
from infra.rehearsal.state import Record

_CLUSTER = "eks/cluster:Cluster"
_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
_ACCESS_POLICY = re.compile(r"arn:aws:eks::aws:cluster-access-policy/AmazonEKS\w*Policy\w*")
_NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}")


def _check_cluster(inputs: Properties) -> Iterator[CheckFailure]:
    name, version = inputs.get("name"), inputs.get("version")
    if isinstance(name, str) and not _NAME.fullmatch(name):
        yield CheckFailure(
            "name", f"InvalidParameterException: {name} is no cluster name (letters, digits, - and _)"
        )
    known_versions = facts.catalog().eks.versions
    if isinstance(version, str) and version not in known_versions:
        offered = ", ".join(known_versions)
        yield CheckFailure("version", f"unsupported Kubernetes version {version}; supported are {offered}")
    for index, kind in enumerate(inputs.get("enabledClusterLogTypes") or []):
        if known(kind) and kind not in _LOG_TYPES:
            yield CheckFailure(f"enabledClusterLogTypes[{index}]", f"must be one of {', '.join(_LOG_TYPES)}")
    network = inputs.get("vpcConfig") or {}
    private = isinstance(network, dict) and network.get("endpointPublicAccess") is False
    if private and network.get("endpointPrivateAccess") is not True:
        yield CheckFailure(
            "vpcConfig.endpointPrivateAccess",
            "InvalidParameterException: private and public endpoint access cannot be false",
        )


def _admit_cluster(site: Site, inputs: Properties) -> None:
    network = inputs.get("vpcConfig")
    subnets = network.get("subnetIds") if isinstance(network, dict) else None
    if not isinstance(subnets, list) or not all(known(subnet) for subnet in subnets):
        return
    found = [site.find(subnet, "ec2/subnet:Subnet") for subnet in subnets]
    zones = {subnet.outputs.get("availabilityZone") for subnet in found if subnet}
    if len(zones) < 2:
        raise refuse(
            "InvalidParameterException",
            "Subnets specified must be in at least two different AZs",
            "vpcConfig.subnetIds",
        )
    vpcs = {subnet.outputs.get("vpcId") for subnet in found if subnet}
    if len(vpcs) > 1:
        raise refuse("InvalidParameterException", "Subnets must be in one VPC", "vpcConfig.subnetIds")


def _cluster_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    given = inputs.get("vpcConfig")
    network = dict(given) if isinstance(given, dict) else {}
    subnets = network.get("subnetIds") or [None]
    first = site.find(subnets[0], "ec2/subnet:Subnet")
    identity = draw(f"{seed}/oidc", 32).upper()
    authority = f"-----BEGIN CERTIFICATE-----\n{draw(f'{seed}/ca', 60)}\n-----END CERTIFICATE-----\n"
    service = inputs.get("kubernetesNetworkConfig")
    kubernetes = dict(service) if isinstance(service, dict) else {}
    return {
        "vpcConfig": {
            "endpointPrivateAccess": False,
            "endpointPublicAccess": True,
            "publicAccessCidrs": ["0.0.0.0/0"] if network.get("endpointPublicAccess", True) else [],
            "securityGroupIds": [],
            **network,
            "clusterSecurityGroupId": f"sg-{draw(f'{seed}/group', 17)}",
            "vpcId": first.outputs["vpcId"] if first else None,
        },
        "endpoint": f"https://{identity}.gr7.{site.region}.eks.amazonaws.com",
        "certificateAuthority": {"data": base64.b64encode(authority.encode()).decode()},
        "identities": [
            {"oidcs": [{"issuer": f"https://oidc.eks.{site.region}.amazonaws.com/id/{identity}"}]}
        ],
        "version": inputs.get("version") or list(facts.catalog().eks.versions)[-1],
        "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16", **kubernetes},
        "accessConfig": {
            "authenticationMode": "CONFIG_MAP",
            "bootstrapClusterCreatorAdminPermissions": True,
            **(inputs.get("accessConfig") or {}),
        },
    }


def _cluster_created(site: Site, cluster: Record) -> None:
    """EKS makes a security group of its own for nodes and control plane."""
    network = cluster.outputs["vpcConfig"]
    group = network["clusterSecurityGroupId"]
    outputs = {"name": f"eks-cluster-sg-{cluster.id}", "vpcId": network["vpcId"], "id": group}
    site.hidden(cluster, "ec2/securityGroup:SecurityGroup", group, outputs, {group})


def _cluster_updated(site: Site, cluster: Record, inputs: Properties) -> Properties:
    """What EKS adds to the blocks that the program gives stays; versions only go up."""
    new, old = inputs.get("version"), cluster.outputs.get("version")
    if isinstance(new, str) and isinstance(old, str) and _minor(new) not in (_minor(old), _minor(old) + 1):
        raise refuse(
            "InvalidParameterException",
            f"Unsupported Kubernetes minor version update from {old} to {new}",
            "version",
            "Go up one minor version at a time.",
        )
    blocks = ("vpcConfig", "kubernetesNetworkConfig", "accessConfig")
    merged = {name: {**(cluster.outputs.get(name) or {}), **(inputs.get(name) or {})} for name in blocks}
    return {**merged, "version": new or old}


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def _cluster_deleting(site: Site, cluster: Record) -> None:
    if cluster.outputs.get("deletionProtection"):
        raise refuse(
            "InvalidRequestException",
            f"Cluster {cluster.id} has deletion protection enabled",
            "deletionProtection",
            "Set it to false and run up before destroy.",
        )


def _needs_entries(site: Site, inputs: Properties) -> None:
    """Access entries work only on clusters that authenticate by the API."""
    cluster = site.find(inputs.get("clusterName"), _CLUSTER)
    if cluster is None:
        return
    mode = cluster.outputs["accessConfig"]["authenticationMode"]
    if mode == "CONFIG_MAP":
        raise refuse(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] "
            "to perform this operation",
            "clusterName",
            "Set accessConfig.authenticationMode of the cluster.",
        )


def _check_entry(inputs: Properties) -> Iterator[CheckFailure]:
    kind = inputs.get("type", "STANDARD")
    if known(kind) and kind != "STANDARD" and inputs.get("kubernetesGroups"):
        yield CheckFailure("kubernetesGroups", f"InvalidParameterException: type {kind} takes no groups")


def _check_access(inputs: Properties) -> Iterator[CheckFailure]:
    policy, scope = inputs.get("policyArn"), inputs.get("accessScope")
    if isinstance(policy, str) and not _ACCESS_POLICY.fullmatch(policy):
        yield CheckFailure(
            "policyArn",
            f"InvalidParameterException: {policy} is no EKS access policy "
            "(arn:aws:eks::aws:cluster-access-policy/AmazonEKS...Policy)",
        )
    if isinstance(scope, dict) and scope.get("type") == "namespace" and not scope.get("namespaces"):
        yield CheckFailure("accessScope.namespaces", "InvalidParameterException: scope namespace needs them")


def _admit_access(site: Site, inputs: Properties) -> None:
    _needs_entries(site, inputs)
    principal, cluster = inputs.get("principalArn"), inputs.get("clusterName")
    if site.preview or not known(principal):
        return
    entries = site.all("eks/accessEntry:AccessEntry")
    if not any(
        (e.outputs["principalArn"], e.outputs["clusterName"]) == (principal, cluster) for e in entries
    ):
        raise refuse(
            "ResourceNotFoundException",
            f"The specified principalArn could not be found: {principal} has no access entry",
            "principalArn",
            "Create the access entry first and let the association depend on it.",
        )


def _check_addon(inputs: Properties) -> Iterator[CheckFailure]:
    """The marketplace has more add-ons than the catalogue, so only what looks like a slip is refused."""
    name, offered = inputs.get("addonName"), facts.catalog().eks.addons
    if isinstance(name, str) and name not in offered:
        near = difflib.get_close_matches(name, offered, n=1, cutoff=0.8)
        if near:
            yield CheckFailure("addonName", f"Addon {name} is not supported; did you mean {near[0]}?")


def _addon_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    cluster = site.find(inputs.get("clusterName"), _CLUSTER)
    version = cluster.outputs["version"] if cluster else "1.0"
    return {"addonVersion": inputs.get("addonVersion") or addon_version(str(inputs["addonName"]), version)}


def addon_version(name: str, kubernetes: str) -> str:
    """A version as EKS spells one; which is current is not known offline."""
    return f"v{kubernetes}.0-eksbuild.1" if name in ("kube-proxy",) else "v1.0.0-eksbuild.1"


HOOKS = {
    _CLUSTER: Hooks(
        check=_check_cluster,
        admit=_admit_cluster,
        outputs=_cluster_outputs,
        created=_cluster_created,
        updated=_cluster_updated,
        deleting=_cluster_deleting,
    ),
    "eks/accessEntry:AccessEntry": Hooks(check=_check_entry, admit=_needs_entries),
    "eks/accessPolicyAssociation:AccessPolicyAssociation": Hooks(check=_check_access, admit=_admit_access),
    "eks/addon:Addon": Hooks(check=_check_addon, outputs=_addon_outputs),
}
