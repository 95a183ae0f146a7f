"""Examples of rules about who reads datasets, how long checkpoints stay, and what budgets see."""

from typing import Any

from tests.policies.examples.kubernetes import EKS
from tests.policies.recording.example import Example, Made

_NODES = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "ec2.amazonaws.com"}}]}'
)


def _bucket(name: str, **more: Any) -> dict[str, Made]:
    return {"bucket": Made("aws:s3/bucket:Bucket", {"bucket": f"example-{name}", **more})}


def _expiring(days: int) -> dict[str, Made]:
    rule = {"id": "old", "status": "Enabled", "filter": {}, "expiration": {"days": days}}
    lifecycle = Made(
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        {"bucket": "$bucket", "rules": [rule]},
    )
    return {**_bucket("checkpoints"), "lifecycle": lifecycle}


def _google(name: str, **more: Any) -> dict[str, Made]:
    props = {"name": f"example-{name}", "location": "US-CENTRAL1", **more}
    return {"bucket": Made("gcp:storage/bucket:Bucket", props)}


def _aging(days: int) -> dict[str, Made]:
    rule = {"action": {"type": "Delete"}, "condition": {"age": days}}
    return _google("checkpoints", lifecycleRules=[rule])


_LOGS = {
    "logs": Made("aws:s3/bucket:Bucket", {"bucket": "example-access"}),
    "logging": Made(
        "aws:s3/bucketLogging:BucketLogging",
        {"bucket": "$bucket", "targetBucket": "$logs", "targetPrefix": "datasets/"},
    ),
}


def _pool(tags: dict[str, str]) -> dict[str, Made]:
    chosen = [{"name": "TagKeyValue", "values": ["user:stack$train"]}]
    tagged = [{"resourceType": "instance", "tags": tags}]
    group = {
        "clusterName": "$cluster.name",
        "nodeRoleArn": "$nodes.arn",
        "subnetIds": ["$a"],
        "scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 4},
        "launchTemplate": {"id": "$template", "version": "1"},
    }
    budget = {
        "budgetType": "COST",
        "limitAmount": "1000",
        "limitUnit": "USD",
        "timeUnit": "MONTHLY",
        "costFilters": chosen,
    }
    machines = {"instanceType": "g6.xlarge", "tagSpecifications": tagged}
    return {
        **EKS,
        "nodes": Made("aws:iam/role:Role", {"assumeRolePolicy": _NODES}),
        "template": Made("aws:ec2/launchTemplate:LaunchTemplate", machines),
        "pool": Made("aws:eks/nodeGroup:NodeGroup", group),
        "budget": Made("aws:budgets/budget:Budget", budget),
    }


def _gke_pool(labels: dict[str, str]) -> dict[str, Made]:
    budget = {
        "billingAccount": "000000-000000-000000",
        "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "1000"}},
        "budgetFilter": {"labels": {"stack": "train"}},
    }
    cluster = {"location": "us-central1", "initialNodeCount": 1, "removeDefaultNodePool": True}
    machines = {"machineType": "g2-standard-4", "resourceLabels": labels}
    pool = {"cluster": "$cluster.name", "location": "us-central1", "nodeCount": 1, "nodeConfig": machines}
    return {
        "cluster": Made("gcp:container/cluster:Cluster", cluster),
        "pool": Made("gcp:container/nodePool:NodePool", pool),
        "budget": Made("gcp:billing/budget:Budget", budget),
    }


EXAMPLES = {
    "MLS-COST-09": Example(_pool({"stack": "train"}), _pool({"Name": "a"}), at="pool", path="launchTemplate"),
    "MLS-COST-09.gke": Example(
        _gke_pool({"stack": "train"}), _gke_pool({}), at="pool", path="nodeConfig.resourceLabels"
    ),
    "MLS-STO-12": Example(_expiring(30), _expiring(3), at="lifecycle", path="rules[0].expiration"),
    "MLS-STO-12.gcs": Example(_aging(30), _aging(3), at="bucket", path="lifecycleRules[0].condition.age"),
    "MLS-STO-13": Example({**_bucket("datasets"), **_LOGS}, _bucket("datasets"), at="bucket", path="logging"),
    "MLS-STO-13.gcs": Example(
        {"logs": _google("access")["bucket"], **_google("datasets", logging={"logBucket": "$logs.name"})},
        _google("datasets"),
        at="bucket",
        path="logging",
    ),
}
