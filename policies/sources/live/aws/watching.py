"""Logs, alarms, trails, schedules; load balancers and SageMaker domains.

Shapes: internal/service/{logs,cloudwatch,cloudtrail,scheduler,elbv2,sagemaker} of terraform-provider-aws.
"""

from typing import Any

from policies.sources.live.form import Each, Joined, Kind, One, View
from policies.sources.live.question import Question

_GROUPS, _TRAILS = "logs.DescribeLogGroups", "cloudtrail.DescribeTrails"
_OF_TRAIL = {"TrailName": "TrailARN"}
QUESTIONS = (
    Question("logs", "DescribeLogGroups", "logGroups"),
    Question("logs", "ListTagsForResource", "tags", of=_GROUPS, by={"resourceArn": "logGroupArn"}),
    Question("logs", "DescribeSubscriptionFilters", "subscriptionFilters", of=_GROUPS,
             by={"logGroupName": "logGroupName"}),
    Question("cloudwatch", "DescribeAlarms", "MetricAlarms", given={"AlarmTypes": ["MetricAlarm"]},
             right="cloudwatch:DescribeAlarms"),
    Question("cloudtrail", "DescribeTrails", "trailList", given={"includeShadowTrails": True}),
    Question("cloudtrail", "GetEventSelectors", of=_TRAILS, by=_OF_TRAIL),
    Question("cloudtrail", "GetTrailStatus", of=_TRAILS, by={"Name": "TrailARN"}),
    Question("scheduler", "ListSchedules", "Schedules"),
    Question("elbv2", "DescribeLoadBalancers", "LoadBalancers"),
    Question("elbv2", "DescribeTags", "TagDescriptions[].Tags[]", of="elbv2.DescribeLoadBalancers",
             by={"ResourceArns": "[LoadBalancerArn]"}),
    Question("sagemaker", "ListDomains", "Domains"),
    Question("sagemaker", "DescribeDomain", of="sagemaker.ListDomains", by={"DomainId": "DomainId"}),
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
    Kind(
        "aws:cloudwatch/logGroup:LogGroup",
        _GROUPS,
        "{logGroupName}",
        {
            "kmsKeyId": "kmsKeyId",
            "logGroupClass": "logGroupClass",
            "name": "logGroupName",
            # Without a term they are kept without end, which the provider writes as 0.
            "retentionInDays": lambda view: view.at("retentionInDays") or 0,
        },
        arn="arn:{partition}:logs:{region}:{account}:log-group:{logGroupName}",
        tags="tagging",
        joined={"tagging": Joined("logs.ListTagsForResource", {"resourceArn": "logGroupArn"})},
        untold=("skipDestroy",),
    ),
    Kind(
        "aws:cloudwatch/logSubscriptionFilter:LogSubscriptionFilter",
        "logs.DescribeSubscriptionFilters",
        "{asked.logGroupName}|{filterName}",
        {
            "destinationArn": "destinationArn",
            "filterPattern": "filterPattern",
            "logGroup": "logGroupName",
            "name": "filterName",
            "roleArn": "roleArn",
        },
        name="{filterName}",
        owner="{asked.logGroupName}",
    ),
    Kind(
        "aws:cloudwatch/metricAlarm:MetricAlarm",
        "cloudwatch.DescribeAlarms",
        "{AlarmName}",
        {
            "actionsEnabled": "ActionsEnabled",
            "alarmActions": "AlarmActions",
            "alarmDescription": "AlarmDescription",
            "arn": "AlarmArn",
            "comparisonOperator": "ComparisonOperator",
            "dimensions": lambda view: (
                {one["Name"]: one["Value"] for one in view.at("Dimensions") or ()} or None
            ),
            "evaluationPeriods": "EvaluationPeriods",
            "metricName": "MetricName",
            "metricQueries": Each(
                "Metrics",
                {
                    "id": "Id",
                    "expression": "Expression",
                    "label": "Label",
                    "returnData": "ReturnData",
                    "metric": One(
                        "MetricStat.Metric", {"metricName": "MetricName", "namespace": "Namespace"}
                    ),
                },
            ),
            "name": "AlarmName",
            "namespace": "Namespace",
            "period": "Period",
            "statistic": "Statistic",
            "threshold": "Threshold",
        },
    ),
    Kind(
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
                            "field": "Field",
                            "equals": "Equals",
                            "startsWiths": "StartsWith",
                            "endsWiths": "EndsWith",
                            "notEquals": "NotEquals",
                            "notStartsWiths": "NotStartsWith",
                            "notEndsWiths": "NotEndsWith",
                        },
                    ),
                },
            ),
            "arn": "TrailARN",
            "enableLogging": "status.IsLogging",
            "eventSelectors": _selectors,
            "isMultiRegionTrail": "IsMultiRegionTrail",
            "isOrganizationTrail": "IsOrganizationTrail",
            "kmsKeyId": "KmsKeyId",
            "name": "Name",
            "s3BucketName": "S3BucketName",
        },
        name="{Name}",
        joined={
            "selectors": Joined("cloudtrail.GetEventSelectors", _OF_TRAIL),
            "status": Joined("cloudtrail.GetTrailStatus", {"Name": "TrailARN"}),
        },
        keys=("kmsKeyId",),
    ),
    Kind(
        "aws:scheduler/schedule:Schedule",
        "scheduler.ListSchedules",
        "{GroupName}/{Name}",
        {"arn": "Arn", "groupName": "GroupName", "name": "Name", "state": "State"},
        name="{Name}",
    ),
    Kind(
        "aws:lb/loadBalancer:LoadBalancer",
        "elbv2.DescribeLoadBalancers",
        "{LoadBalancerArn}",
        {
            "arn": "LoadBalancerArn",
            "internal": lambda view: view.at("Scheme") == "internal",
            "loadBalancerType": "Type",
            "name": "LoadBalancerName",
            "securityGroups": "SecurityGroups",
            "vpcId": "VpcId",
        },
        name="{LoadBalancerName}",
        tags="tagging",
        joined={"tagging": Joined("elbv2.DescribeTags", {"ResourceArns": "[LoadBalancerArn]"}, listed=True)},
    ),
    Kind(
        "aws:sagemaker/domain:Domain",
        "sagemaker.DescribeDomain",
        "{DomainId}",
        {
            "appNetworkAccessType": "AppNetworkAccessType",
            "arn": "DomainArn",
            "authMode": "AuthMode",
            "domainName": "DomainName",
            "homeEfsFileSystemId": "HomeEfsFileSystemId",
            "kmsKeyId": "KmsKeyId",
            "subnetIds": "SubnetIds",
            "vpcId": "VpcId",
        },
        name="{DomainName}",
        keys=("kmsKeyId",),
    ),
)
