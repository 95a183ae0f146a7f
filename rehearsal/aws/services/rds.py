"""Aurora. Source: Amazon RDS API Reference (CreateDBCluster, CreateDBInstance), Aurora User Guide."""

import itertools
import string
from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks, refuse
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record
from rehearsal.dataplane import folders

# Document space with the values of secrets, by ARN.
SECRETS = "secret"
# Document space with the final snapshots of deleted clusters, by scope and name.
_SNAPSHOTS = "rds-snapshot"
_PORTS = {"aurora-postgresql": 5432, "aurora-mysql": 3306, "postgres": 5432, "mysql": 3306}


def _cluster_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    filled: Properties = {
        "port": inputs.get("port") or _PORTS.get(str(inputs.get("engine")), 3306),
        "clusterMembers": [],
        "engineVersionActual": inputs.get("engineVersion"),
        "masterUserSecrets": [],
    }
    if inputs.get("manageMasterUserPassword"):
        tail = f"{outputs.get('clusterResourceId')}-{draw(f'{seed}/secret', 6, string.ascii_letters)}"
        arn = f"arn:aws:secretsmanager:{site.region}:{site.account}:secret:rds!{tail}"
        key = inputs.get("masterUserSecretKmsKeyId")
        filled["masterUserSecrets"] = [{"secretArn": arn, "secretStatus": "active", "kmsKeyId": key}]
    return filled


def _cluster_created(site: Site, cluster: Record) -> None:
    """Create the secret with the password that RDS manages; deleted with the cluster."""
    for secret in cluster.outputs["masterUserSecrets"]:
        arn = secret["secretArn"]
        name = arn.rpartition(":")[2]
        outputs = {"arn": arn, "name": name, "owningService": "rds"}
        site.hidden(cluster, "secretsmanager/secret:Secret", arn, outputs, {arn})
        password = draw(f"{cluster.key}/{arn}", 28, string.ascii_letters + string.digits)
        user = cluster.inputs.get("masterUsername", "postgres")
        site.state.put_document(SECRETS, arn, {"username": user, "password": password})


def _cluster_deleting(site: Site, cluster: Record) -> None:
    if not cluster.inputs.get("skipFinalSnapshot") and not cluster.inputs.get("finalSnapshotIdentifier"):
        # Source: hashicorp/terraform-provider-aws internal/service/rds/cluster.go (delete).
        raise refuse(
            "InvalidParameterCombination",
            "final_snapshot_identifier is required when skip_final_snapshot is false",
            "finalSnapshotIdentifier",
        )
    _take_snapshot(site, cluster)
    for secret in cluster.outputs.get("masterUserSecrets") or []:
        site.state.drop_document(SECRETS, secret["secretArn"])


def _cluster_deleted(site: Site, cluster: Record) -> None:
    """Remove the data, so that a new cluster of this name starts empty."""
    folders.remove(folders.database(site.state.path.parent, cluster.id))


def _take_snapshot(site: Site, cluster: Record) -> None:
    """Take the final snapshot, which outlives the cluster; messages: moto 5.2.5 moto/rds/exceptions.py."""
    name = cluster.inputs.get("finalSnapshotIdentifier")
    if cluster.inputs.get("skipFinalSnapshot") or not name:
        return
    key = f"{site.scope}|{name}"
    if site.state.document(_SNAPSHOTS, key) is not None:
        raise refuse(
            "DBClusterSnapshotAlreadyExistsFault",
            f"Cannot create the snapshot because a snapshot with the identifier {name} already exists.",
            "finalSnapshotIdentifier",
            "An earlier cluster left it behind: give each snapshot its own name.",
        )
    site.state.put_document(_SNAPSHOTS, key, {"cluster": cluster.id})


def _group_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    subnet = site.find((inputs.get("subnetIds") or [None])[0], "ec2/subnet:Subnet")
    return {"vpcId": subnet.outputs["vpcId"] if subnet else None, "supportedNetworkTypes": ["IPV4"]}


def _instance_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    cluster = site.find(inputs.get("clusterIdentifier"), "rds/cluster:Cluster")
    if cluster is None:
        return {}
    writers = (
        one
        for one in site.others("rds/clusterInstance:ClusterInstance")
        if one.outputs.get("clusterIdentifier") == cluster.id
    )
    filled: Properties = {
        "port": cluster.outputs.get("port"),
        "writer": next(itertools.islice(writers, 1), None) is None,
        "engineVersionActual": inputs.get("engineVersion") or cluster.outputs.get("engineVersion"),
    }
    for name in ("engineVersion", "dbSubnetGroupName", "kmsKeyId"):
        filled[name] = inputs.get(name) or cluster.outputs.get(name)
    return filled


HOOKS: Mapping[str, Hooks[Site]] = {
    "rds/cluster:Cluster": Hooks(
        outputs=_cluster_outputs,
        created=_cluster_created,
        deleting=_cluster_deleting,
        deleted=_cluster_deleted,
    ),
    "rds/subnetGroup:SubnetGroup": Hooks(outputs=_group_outputs),
    "rds/clusterInstance:ClusterInstance": Hooks(outputs=_instance_outputs),
}
