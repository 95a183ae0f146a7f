"""Examples of the rules COST."""

from typing import Any

from tests.policies.recording.bases import AWS_NETWORK, EFA_POOL, gke_pool, with_changes
from tests.policies.recording.example import DROP, Example, Made

_LOGS = Made("aws:cloudwatch/logGroup:LogGroup", {"name": "/train/flow", "retentionInDays": 30})
_KEPT = Made(
    "gcp:logging/projectBucketConfig:ProjectBucketConfig",
    {"project": "example", "location": "global", "bucketId": "_Default", "retentionDays": 30},
)
_BUDGET = "aws:budgets/budget:Budget"


def _alert(threshold: int, kind: str = "ACTUAL") -> dict[str, Any]:
    return {
        "comparisonOperator": "GREATER_THAN",
        "notificationType": kind,
        "threshold": threshold,
        "thresholdType": "PERCENTAGE",
        "subscriberEmailAddresses": ["finops@example.com"],
    }


def _budget(*alerts: dict[str, Any]) -> dict[str, Made]:
    props = {
        "budgetType": "COST",
        "timeUnit": "MONTHLY",
        "limitAmount": "1000",
        "limitUnit": "USD",
        "notifications": [*alerts],
    }
    return {**EFA_POOL, "budget": Made(_BUDGET, props)}


def _google_budget(percent: float) -> dict[str, Made]:
    props = {
        "billingAccount": "000000-000000-000000",
        "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "1000"}},
        "thresholdRules": [{"thresholdPercent": percent, "spendBasis": "CURRENT_SPEND"}],
    }
    return {**gke_pool(), "budget": Made("gcp:billing/budget:Budget", props)}


def _pool(least: int, most: int) -> dict[str, Made]:
    sizes = {"minSize": least, "desiredSize": least, "maxSize": most}
    return with_changes(EFA_POOL, "pool", scalingConfig=sizes)


def _gke(most: int) -> dict[str, Made]:
    return gke_pool(autoscaling={"minNodeCount": 0, "maxNodeCount": most})


_NAT = {
    **AWS_NETWORK,
    "internet": Made("aws:ec2/internetGateway:InternetGateway", {"vpcId": "$vpc"}),
    "address": Made("aws:ec2/eip:Eip", {"domain": "vpc"}, after=["internet"]),
    "nat": Made("aws:ec2/natGateway:NatGateway", {"subnetId": "$a", "allocationId": "$address"}),
}
_TO_S3 = Made(
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    {"vpcId": "$vpc", "serviceName": "com.amazonaws.us-east-1.s3", "vpcEndpointType": "Gateway"},
)


def _volume(kind: str) -> dict[str, Made]:
    return {
        "disk": Made("aws:ebs/volume:Volume", {"availabilityZone": "us-east-1a", "size": 100, "type": kind})
    }


_RESERVED = {
    **EFA_POOL,
    "reserved": Made(
        "aws:ec2/capacityReservation:CapacityReservation",
        {
            "instanceType": "p4d.24xlarge",
            "instancePlatform": "Linux/UNIX",
            "instanceCount": 2,
            "availabilityZone": "us-east-1a",
            "endDateType": "limited",
            "endDate": "2027-06-30T23:59:59Z",
        },
    ),
}

EXAMPLES = {
    "MLS-COST-01": Example(_budget(_alert(80)), _budget(_alert(100)), at="budget", path="notifications"),
    "MLS-COST-01.gcp": Example(_google_budget(0.5), _google_budget(1.0), at="budget", path="thresholdRules"),
    "MLS-COST-02": Example(_pool(0, 4), _pool(0, 40), at=""),
    "MLS-COST-02.gke": Example(_gke(4), _gke(40), at=""),
    "MLS-COST-03": Example(_pool(0, 4), _pool(1, 4), at="pool", path="scalingConfig.minSize"),
    "MLS-COST-04": Example(_budget(_alert(80), _alert(100, "FORECASTED")), _budget(_alert(80)), at=""),
    "MLS-COST-05": Example({**_NAT, "to-s3": _TO_S3}, _NAT, at="nat"),
    "MLS-COST-06": Example(_volume("gp3"), _volume("gp2"), at="disk", path="type"),
    "MLS-COST-07": Example(
        {"logs": _LOGS}, {"logs": _LOGS.but(retentionInDays=DROP)}, at="logs", path="retentionInDays"
    ),
    "MLS-COST-07.gcp": Example(
        {"kept": _KEPT}, {"kept": _KEPT.but(retentionDays=3650)}, at="kept", path="retentionDays"
    ),
    "MLS-COST-08": Example(
        _RESERVED,
        with_changes(_RESERVED, "reserved", endDateType="unlimited", endDate=DROP),
        at="reserved",
        path="endDateType",
    ),
}
