"""Aurora. Source: Amazon RDS API Reference (CreateDBCluster, CreateDBInstance), Aurora User Guide."""

import itertools
import string
from collections.abc import Iterator
from typing import Any

from infra.rehearsal.aws.naming import draw
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties
from infra.rehearsal.state import Record

# Where the values of secrets are kept: document space and, as its keys, ARNs of secrets.
SECRETS = "secret"
_PORTS = {"aurora-postgresql": 5432, "aurora-mysql": 3306, "postgres": 5432, "mysql": 3306}
_CAPACITY_STEP, _CAPACITY_MOST = 0.5, 256


def _check_cluster(inputs: Properties) -> Iterator[CheckFailure]:
    managed, password = inputs.get("manageMasterUserPassword"), inputs.get("masterPassword")
    if managed is True and password is not None:
        yield CheckFailure("masterPassword", "InvalidParameterCombination: RDS manages the password itself")
    restored = any(inputs.get(name) for name in ("snapshotIdentifier", "replicationSourceIdentifier"))
    if not managed and "masterPassword" not in inputs and "masterPasswordWo" not in inputs and not restored:
        yield CheckFailure(
            "manageMasterUserPassword", "InvalidParameterValue: give it, or masterUsername and masterPassword"
        )
    if inputs.get("kmsKeyId") is not None and inputs.get("storageEncrypted") is not True:
        yield CheckFailure("storageEncrypted", "InvalidParameterCombination: a KMS key needs it to be true")
    if inputs.get("skipFinalSnapshot") is not True and "finalSnapshotIdentifier" not in inputs:
        yield CheckFailure(
            "finalSnapshotIdentifier",
            "needed unless skipFinalSnapshot is true: without it the cluster cannot be deleted",
        )
    scaling = inputs.get("serverlessv2ScalingConfiguration")
    if isinstance(scaling, dict):
        yield from _check_scaling(scaling)


def _check_scaling(scaling: dict[str, Any]) -> Iterator[CheckFailure]:
    low, high = scaling.get("minCapacity"), scaling.get("maxCapacity")
    for name, value in (("minCapacity", low), ("maxCapacity", high)):
        if isinstance(value, int | float) and (value % _CAPACITY_STEP or not 0 <= value <= _CAPACITY_MOST):
            yield CheckFailure(
                f"serverlessv2ScalingConfiguration.{name}",
                f"InvalidParameterValue: {value} is no multiple of 0.5 from 0 to {_CAPACITY_MOST} ACUs",
            )
    if isinstance(low, int | float) and isinstance(high, int | float) and (low > high or high < 1):
        yield CheckFailure(
            "serverlessv2ScalingConfiguration.maxCapacity",
            f"InvalidParameterValue: it must be at least 1 and at least minCapacity ({low}), not {high}",
        )


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
    """RDS keeps the password that it manages in a secret of its own, which goes with the cluster."""
    for secret in cluster.outputs["masterUserSecrets"]:
        arn = secret["secretArn"]
        name = arn.rpartition(":")[2]
        outputs = {"arn": arn, "name": name, "owningService": "rds"}
        site.hidden(cluster, "secretsmanager/secret:Secret", arn, outputs, {arn})
        password = draw(f"{cluster.key}/{arn}", 28, string.ascii_letters + string.digits)
        user = cluster.inputs.get("masterUsername", "postgres")
        site.state.put_document(SECRETS, arn, {"username": user, "password": password})


def _cluster_deleting(site: Site, cluster: Record) -> None:
    if cluster.outputs.get("deletionProtection"):
        raise refuse(
            "InvalidParameterCombination",
            "Cannot delete protected Cluster, please disable deletion protection and try again.",
            "deletionProtection",
        )
    for secret in cluster.outputs.get("masterUserSecrets") or []:
        site.state.drop_document(SECRETS, secret["secretArn"])


def _admit_group(site: Site, inputs: Properties) -> None:
    subnets = [site.find(value, "ec2/subnet:Subnet") for value in inputs.get("subnetIds") or []]
    found = [subnet for subnet in subnets if subnet is not None]
    if len(found) < len(subnets):
        return
    if len({subnet.outputs["availabilityZone"] for subnet in found}) < 2:
        raise refuse(
            "DBSubnetGroupDoesNotCoverEnoughAZs",
            "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. "
            "Please edit the DB subnet group to add coverage for at least 2 AZs.",
            "subnetIds",
        )
    if len({subnet.outputs["vpcId"] for subnet in found}) > 1:
        raise refuse("InvalidSubnet", "The subnets are not in one VPC", "subnetIds")


def _group_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    subnet = site.find((inputs.get("subnetIds") or [None])[0], "ec2/subnet:Subnet")
    return {"vpcId": subnet.outputs["vpcId"] if subnet else None, "supportedNetworkTypes": ["IPV4"]}


def _admit_instance(site: Site, inputs: Properties) -> None:
    cluster = site.find(inputs.get("clusterIdentifier"), "rds/cluster:Cluster")
    if cluster is None:
        return
    engine, version = inputs.get("engine"), inputs.get("engineVersion")
    if known(engine) and engine != cluster.outputs.get("engine"):
        raise refuse(
            "InvalidParameterCombination",
            f"The engine name requested for your DB instance ({engine}) doesn't match the engine name "
            f"of your DB cluster ({cluster.outputs.get('engine')}).",
            "engine",
        )
    if known(version) and cluster.outputs.get("engineVersion") not in (None, version):
        raise refuse(
            "InvalidParameterCombination",
            "The engine versions of cluster and instance differ",
            "engineVersion",
        )
    serverless = inputs.get("instanceClass") == "db.serverless"
    if serverless and not cluster.outputs.get("serverlessv2ScalingConfiguration"):
        raise refuse(
            "InvalidDBClusterStateFault",
            "Set the Serverless v2 scaling configuration on the parent DB cluster before creating a "
            "Serverless v2 DB instance.",
            "instanceClass",
        )


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


HOOKS = {
    "rds/cluster:Cluster": Hooks(
        check=_check_cluster,
        outputs=_cluster_outputs,
        created=_cluster_created,
        deleting=_cluster_deleting,
    ),
    "rds/subnetGroup:SubnetGroup": Hooks(admit=_admit_group, outputs=_group_outputs),
    "rds/clusterInstance:ClusterInstance": Hooks(admit=_admit_instance, outputs=_instance_outputs),
}
