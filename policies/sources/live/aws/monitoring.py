"""Logs, alarms, trails, schedules; load balancers and SageMaker domains.

Shapes: internal/service/{logs,cloudwatch,cloudtrail,scheduler,elbv2,sagemaker} of terraform-provider-aws.
"""

from typing import Any

from policies.sources.live.mapping import Each, Joined, LiveKind, One, View, same
from policies.sources.live.queries import ApiQuery

_GROUPS, _TRAILS = "logs.DescribeLogGroups", "cloudtrail.DescribeTrails"
_OF_TRAIL = {"TrailName": "TrailARN"}
QUERIES = (
    ApiQuery("logs", "DescribeLogGroups", "logGroups"),
    ApiQuery("logs", "ListTagsForResource", "tags", of=_GROUPS, by={"resourceArn": "logGroupArn"}),
    ApiQuery("logs", "DescribeSubscriptionFilters", "subscriptionFilters", of=_GROUPS,
             by={"logGroupName": "logGroupName"}),
    ApiQuery("cloudwatch", "DescribeAlarms", "MetricAlarms", given={"AlarmTypes": ["MetricAlarm"]},
             right="cloudwatch:DescribeAlarms"),
    ApiQuery("cloudtrail", "DescribeTrails", "trailList", given={"includeShadowTrails": True}),
    ApiQuery("cloudtrail", "GetEventSelectors", of=_TRAILS, by=_OF_TRAIL),
    ApiQuery("cloudtrail", "GetTrailStatus", of=_TRAILS, by={"Name": "TrailARN"}),
    ApiQuery("scheduler", "ListSchedules", "Schedules"),
    ApiQuery("elbv2", "DescribeLoadBalancers", "LoadBalancers"),
    ApiQuery("elbv2", "DescribeTags", "TagDescriptions[].Tags[]", of="elbv2.DescribeLoadBalancers",
             by={"ResourceArns": "[LoadBalancerArn]"}),
    ApiQuery("sagemaker", "ListDomains", "Domains"),
    ApiQuery("sagemaker", "DescribeDomain", of="sagemaker.ListDomains", by={"DomainId": "DomainId"}),
)  # fmt: skip


def _selectors(view: View) -> Any:
    rows = view.at("selectors.EventSelectors") or ()
    return [
        {
            "includeManagementEvents": one.get("IncludeManagementEvents"),
            "readWriteType": one.get("ReadWriteType"),
            "dataResources": [
                {"type": data.get("Type"), "values": data.get("Values")}
                for data in one.get("DataResources") or ()
            ],
        }
        for one in rows
    ] or None


KINDS = (
    LiveKind(
        "aws:cloudwatch/logGroup:LogGroup",
        _GROUPS,
        "{logGroupName}",
        {
            **same("kmsKeyId", "logGroupClass"),
            "name": "logGroupName",
            # Without a retention, logs never expire, which the provider writes as 0.
            "retentionInDays": lambda view: view.at("retentionInDays") or 0,
        },
        arn="arn:{partition}:logs:{region}:{account}:log-group:{logGroupName}",
        tags="tagging",
        joined={"tagging": Joined("logs.ListTagsForResource", {"resourceArn": "logGroupArn"})},
        program_only=("skipDestroy",),
    ),
    LiveKind(
        "aws:cloudwatch/logSubscriptionFilter:LogSubscriptionFilter",
        "logs.DescribeSubscriptionFilters",
        "{asked.logGroupName}|{filterName}",
        {
            **same("destinationArn", "filterPattern", "roleArn"),
            "logGroup": "logGroupName",
            "name": "filterName",
        },
        name="{filterName}",
        owner="{asked.logGroupName}",
    ),
    LiveKind(
        "aws:cloudwatch/metricAlarm:MetricAlarm",
        "cloudwatch.DescribeAlarms",
        "{AlarmName}",
        {
            **same("ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator"),
            **same("EvaluationPeriods", "MetricName", "Namespace", "Period", "Statistic", "Threshold"),
            "arn": "AlarmArn",
            "dimensions": lambda view: (
                {one["Name"]: one["Value"] for one in view.at("Dimensions") or ()} or None
            ),
            "metricQueries": Each(
                "Metrics",
                {
                    **same("Id", "Expression", "Label", "ReturnData"),
                    "metric": One("MetricStat.Metric", same("MetricName", "Namespace")),
                },
            ),
            "name": "AlarmName",
        },
    ),
    LiveKind(
        "aws:cloudtrail/trail:Trail",
        _TRAILS,
        "{TrailARN}",
        {
            "advancedEventSelectors": Each(
                "selectors.AdvancedEventSelectors",
                {
                    "name": "Name",
                    "fieldSelectors": Each(
                        "FieldSelectors",
                        {
                            **same("Field", "Equals", "NotEquals"),
                            "startsWiths": "StartsWith",
                            "endsWiths": "EndsWith",
                            "notStartsWiths": "NotStartsWith",
                            "notEndsWiths": "NotEndsWith",
                        },
                    ),
                },
            ),
            "arn": "TrailARN",
            "enableLogging": "status.IsLogging",
            "eventSelectors": _selectors,
            **same("IsMultiRegionTrail", "IsOrganizationTrail", "KmsKeyId", "Name", "S3BucketName"),
        },
        name="{Name}",
        joined={
            "selectors": Joined("cloudtrail.GetEventSelectors", _OF_TRAIL),
            "status": Joined("cloudtrail.GetTrailStatus", {"Name": "TrailARN"}),
        },
        keys=("kmsKeyId",),
    ),
    LiveKind(
        "aws:scheduler/schedule:Schedule",
        "scheduler.ListSchedules",
        "{GroupName}/{Name}",
        same("Arn", "GroupName", "Name", "State"),
        name="{Name}",
    ),
    LiveKind(
        "aws:lb/loadBalancer:LoadBalancer",
        "elbv2.DescribeLoadBalancers",
        "{LoadBalancerArn}",
        {
            "arn": "LoadBalancerArn",
            "internal": lambda view: view.at("Scheme") == "internal",
            "loadBalancerType": "Type",
            "name": "LoadBalancerName",
            **same("SecurityGroups", "VpcId"),
        },
        name="{LoadBalancerName}",
        tags="tagging",
        joined={"tagging": Joined("elbv2.DescribeTags", {"ResourceArns": "[LoadBalancerArn]"}, listed=True)},
    ),
    LiveKind(
        "aws:sagemaker/domain:Domain",
        "sagemaker.DescribeDomain",
        "{DomainId}",
        {
            **same("AppNetworkAccessType", "AuthMode", "DomainName", "HomeEfsFileSystemId", "KmsKeyId"),
            **same("SubnetIds", "VpcId"),
            "arn": "DomainArn",
        },
        name="{DomainName}",
        keys=("kmsKeyId",),
    ),
)
