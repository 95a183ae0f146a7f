"""Aurora clusters, their instances and subnet groups."""

from collections.abc import Iterator, Mapping

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import all_known, number, subnets, vpcs, zones
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, known
from rehearsal.core.rules.model import Violation

_CLUSTER, _INSTANCE = "aws:rds/cluster:Cluster", "aws:rds/clusterInstance:ClusterInstance"
_GROUP = "aws:rds/subnetGroup:SubnetGroup"
_API = "botocore 1.44.5 rds/2014-10-31 CreateDBClusterMessage"
_SCALING = "botocore 1.44.5 rds/2014-10-31 ServerlessV2ScalingConfiguration"
_PATH = "serverlessv2ScalingConfiguration"
# Properties -> limits of the catalog.
_CAPACITIES = {"minCapacity": "aurora_min_acu", "maxCapacity": "aurora_max_acu"}
_LOGS = {
    "aurora-mysql": ("audit", "error", "general", "instance", "slowquery", "iam-db-auth-error"),
    "aurora-postgresql": ("instance", "postgresql", "iam-db-auth-error"),
}


@BOOK.rule("AWS-RDS-005", _CLUSTER, source=_SCALING)
def capacity_units(inputs: Properties) -> Iterator[Violation]:
    """Capacities of Aurora Serverless are those that the catalog states."""
    for name, key in _CAPACITIES.items():
        path = f"{_PATH}.{name}"
        value = number(at(inputs, path))
        for problem in facts.catalog().limits[key].problems(path, value) if value is not None else ():
            yield Violation(path, f"{value:g}: {problem.rule}", problem.fix)


@BOOK.rule("AWS-RDS-006", _CLUSTER, source="AWS CDK reference, DatabaseCluster.serverlessV2MaxCapacity")
def capacities_in_order(inputs: Properties) -> Iterator[Violation]:
    """The most capacity is at least 1 ACU and not below the least."""
    low, high = number(at(inputs, f"{_PATH}.minCapacity")), number(at(inputs, f"{_PATH}.maxCapacity"))
    if low is not None and high is not None and (low > high or high < 1):
        yield Violation(
            f"{_PATH}.maxCapacity", f"it must be at least 1 and at least minCapacity ({low:g}), not {high:g}"
        )


@BOOK.rule("AWS-RDS-008", _CLUSTER, source=_API)
def logs_of_the_engine(inputs: Properties) -> Iterator[Violation]:
    """Each Aurora engine exports its own logs."""
    offered, wanted = _LOGS.get(str(inputs.get("engine"))), inputs.get("enabledCloudwatchLogsExports")
    for index, name in enumerate(wanted if isinstance(wanted, list) and offered else []):
        if offered and known(name) and name not in offered:
            yield Violation(
                f"enabledCloudwatchLogsExports[{index}]",
                f"{inputs['engine']} has no log {name}",
                f"It has {', '.join(offered)}.",
            )


@BOOK.rule("AWS-RDS-009", _CLUSTER, _INSTANCE, source=_API)
def monitoring_needs_a_role(inputs: Properties) -> Iterator[Violation]:
    """Enhanced monitoring needs a role."""
    if number(inputs.get("monitoringInterval")) and inputs.get("monitoringRoleArn") is None:
        yield Violation("monitoringRoleArn", "a monitoringInterval needs it", "Give the role, or interval 0.")


@BOOK.rule("AWS-RDS-010", _CLUSTER, source=_API)
def advanced_insights(inputs: Properties) -> Iterator[Violation]:
    """Database Insights mode advanced needs Performance Insights kept for 465 days."""
    days = inputs.get("performanceInsightsRetentionPeriod")
    if inputs.get("databaseInsightsMode") != "advanced":
        return
    if inputs.get("performanceInsightsEnabled") in (None, False):
        yield Violation("performanceInsightsEnabled", "databaseInsightsMode advanced needs it to be true")
    elif not (days is not None and (not known(days) or days == 465)):
        yield Violation("performanceInsightsRetentionPeriod", "databaseInsightsMode advanced needs 465")


@BOOK.rule_around(
    "AWS-RDS-020", _GROUP, source="botocore 1.44.5 rds/2014-10-31 DBSubnetGroupDoesNotCoverEnoughAZs"
)
def group_covers_two_zones(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A subnet group covers at least two zones."""
    given = inputs.get("subnetIds")
    if all_known(given) and len(zones(subnets(site, given))) < 2:
        yield Violation(
            "subnetIds",
            "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement.",
            "Please edit the DB subnet group to add coverage for at least 2 AZs.",
            "DBSubnetGroupDoesNotCoverEnoughAZs",
        )


@BOOK.rule_around("AWS-RDS-021", _GROUP, source="botocore 1.44.5 rds/2014-10-31 InvalidSubnet")
def group_in_one_vpc(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A subnet group's subnets are in one VPC."""
    if len(vpcs(subnets(site, inputs.get("subnetIds")))) > 1:
        yield Violation(
            "subnetIds", "The subnets are not in one VPC", "Choose those of one.", "InvalidSubnet"
        )


@BOOK.rule_around(
    "AWS-RDS-022", _INSTANCE, source="moto 5.2.5 moto/rds/exceptions.py (InvalidDBInstanceEngine)"
)
def engine_of_the_cluster(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An instance has the engine of its cluster."""
    cluster = site.find(inputs.get("clusterIdentifier"), "rds/cluster:Cluster")
    engine = inputs.get("engine")
    if cluster and known(engine) and engine != cluster.outputs.get("engine"):
        yield Violation(
            "engine",
            f"The engine name requested for your DB instance ({engine}) doesn't match the engine name "
            f"of your DB cluster ({cluster.outputs.get('engine')}).",
            "Use the cluster's.",
            "InvalidParameterCombination",
        )


@BOOK.rule_around("AWS-RDS-023", _INSTANCE, source="pulumi-aws 7.51.1 docstring of aws.rds.ClusterInstance")
def version_of_the_cluster(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An instance has the engine version of its cluster."""
    cluster = site.find(inputs.get("clusterIdentifier"), "rds/cluster:Cluster")
    version = inputs.get("engineVersion")
    if cluster and known(version) and cluster.outputs.get("engineVersion") not in (None, version):
        yield Violation(
            "engineVersion",
            "The engine versions of cluster and instance differ",
            "Use the cluster's.",
            "InvalidParameterCombination",
        )


@BOOK.rule_around("AWS-RDS-024", _INSTANCE, source="cloudposse/terraform-aws-rds-cluster pull request 181")
def serverless_needs_a_range(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An instance of class db.serverless needs the cluster's capacity range."""
    cluster = site.find(inputs.get("clusterIdentifier"), "rds/cluster:Cluster")
    if not cluster or inputs.get("instanceClass") != "db.serverless":
        return
    if not isinstance(cluster.outputs.get(_PATH), Mapping):
        yield Violation(
            "instanceClass",
            "Set the Serverless v2 scaling configuration on the parent DB cluster before creating a "
            "Serverless v2 DB instance.",
            f"It is the cluster's {_PATH}.",
            "InvalidDBClusterStateFault",
        )
