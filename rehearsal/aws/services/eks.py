"""EKS clusters. Source: Amazon EKS API Reference and User Guide."""

import base64
from collections.abc import Mapping

from rehearsal.aws import facts
from rehearsal.aws.site import Site
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.refusals import keep
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record

_CLUSTER, _LOGS = "eks/cluster:Cluster", "cloudwatch/logGroup:LogGroup"


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
    """Create the security group of EKS for nodes and control plane."""
    network = cluster.outputs["vpcConfig"]
    group = network["clusterSecurityGroupId"]
    outputs = {"name": f"eks-cluster-sg-{cluster.id}", "vpcId": network["vpcId"], "id": group}
    site.hidden(cluster, "ec2/securityGroup:SecurityGroup", group, outputs, {group})


def _cluster_updated(site: Site, cluster: Record, inputs: Properties) -> Properties:
    """Keep the version that EKS chose."""
    return {"version": inputs.get("version") or cluster.outputs.get("version")}


def _cluster_deleting(site: Site, cluster: Record) -> None:
    """Late logs recreate a deleted log group, without key and retention, and it stays.

    Source: terraform-aws-modules/terraform-aws-eks issues 920 and 2763.
    """
    group = f"/aws/eks/{cluster.id}/cluster"
    if cluster.outputs.get("enabledClusterLogTypes") and site.find(group, _LOGS) is None:
        keep(site, TABLE.row(f"aws:{_LOGS}"), group, {"name": group})


HOOKS: Mapping[str, Hooks[Site]] = {
    _CLUSTER: Hooks(
        outputs=_cluster_outputs,
        created=_cluster_created,
        updated=_cluster_updated,
        deleting=_cluster_deleting,
    )
}
