"""Examples of the rules about identity, keys, messages, billing, SageMaker and tags."""

import json

from tests.rehearsal.aws.rules.world import DROP, Example, policy

_ROLE, _POLICY, _INLINE = "iam/role:Role", "iam/policy:Policy", "iam/rolePolicy:RolePolicy"
_TRUST = "assumeRolePolicy"
_KEY, _ALIAS, _LOGS = "kms/key:Key", "kms/alias:Alias", "cloudwatch/logGroup:LogGroup"
_SECRET, _VERSION = "secretsmanager/secret:Secret", "secretsmanager/secretVersion:SecretVersion"
_BUDGET = "budgets/budget:Budget"
_MONITOR = "costexplorer/anomalyMonitor:AnomalyMonitor"
_SUBSCRIPTION = "costexplorer/anomalySubscription:AnomalySubscription"
_TOPIC = "sns/topic:Topic"
_EVENTS = "cloudwatch/eventRule:EventRule"
_TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:t"
_CLOUDFRONT = "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity"
_MISSING = "arn:aws:iam::123456789012:role/absent"
_MANAGED = {"monitorType": "DIMENSIONAL", "monitorSpecification": DROP}


def _trust(principal: object, action: str = "sts:AssumeRole") -> str:
    return policy(Action=action, Resource=DROP, Principal=principal)


def _document(**changes: object) -> str:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement], **changes})


def _twice(*sids: str) -> str:
    statements = [{"Sid": sid, "Effect": "Allow", "Action": "s3:*", "Resource": "*"} for sid in sids]
    return _document(Statement=statements)


def _threshold(value: str) -> dict[str, object]:
    dimension = {"key": "ANOMALY_TOTAL_IMPACT_ABSOLUTE", "matchOptions": ["GREATER_THAN_OR_EQUAL"]}
    return {"thresholdExpression": {"dimension": {**dimension, "values": [value]}}}


def _long(size: int) -> str:
    return policy(Resource=[f"arn:aws:s3:::{'x' * 50}{index:04}" for index in range(size // 60)])


EXAMPLES = {
    "AWS-IAM-001": Example(_POLICY, "policy", {"policy": "{"}),
    "AWS-IAM-002": Example(
        _POLICY,
        "policy",
        {"policy": _document(Version="2020-01-01")},
        {"policy": _document(Version="2008-10-17")},
    ),
    "AWS-IAM-003": Example(_POLICY, "policy", {"policy": policy(Conditon={})}),
    "AWS-IAM-004": Example(
        _POLICY, "policy", {"policy": policy(Effect="allow")}, {"policy": policy(Effect="Deny")}
    ),
    "AWS-IAM-005": Example(_POLICY, "policy", {"policy": policy(NotAction="s3:PutObject")}),
    "AWS-IAM-006": Example(
        _POLICY, "policy", {"policy": policy(Action="GetObject")}, {"policy": policy(Action=["*", "*:*"])}
    ),
    "AWS-IAM-007": Example(_POLICY, "policy", {"policy": policy(Resource="my-bucket")}),
    "AWS-IAM-008": Example(_POLICY, "policy", {"policy": policy(Resource=DROP)}),
    "AWS-IAM-009": Example(_INLINE, "policy", {"policy": policy(Principal="*")}),
    "AWS-IAM-010": Example(
        _ROLE, _TRUST, {_TRUST: policy(Action="sts:AssumeRole", Resource=DROP)}, {_TRUST: _trust("*")}
    ),
    "AWS-IAM-019": Example(
        _ROLE, _TRUST, {_TRUST: policy(Action="sts:AssumeRole", Principal="*")}, {_TRUST: _trust("*")}
    ),
    "AWS-IAM-020": Example(
        _ROLE, _TRUST, {_TRUST: _trust("*", "s3:GetObject")}, {_TRUST: _trust("*", "sts:TagSession")}
    ),
    "AWS-IAM-021": Example(
        _POLICY, "policy", {"policy": policy(Sid="Read all")}, {"policy": policy(Sid="ReadAll1")}
    ),
    "AWS-IAM-011": Example(
        "s3/bucketPolicy:BucketPolicy",
        "policy",
        {"policy": policy(Principal={"AWS": "me"}, Resource="arn:aws:s3:::$bucket/*")},
        {
            "policy": policy(
                Principal={"AWS": ["123456789012", f"{_CLOUDFRONT} E2QWRUHAPOMQZL"]},
                Resource="arn:aws:s3:::$bucket/*",
            )
        },
    ),
    "AWS-IAM-012": Example(
        _POLICY,
        "policy",
        {"policy": policy(Condition={"StringEqual": {"aws:x": "y"}})},
        {"policy": policy(Condition={"ForAnyValue:StringLikeIfExists": {"aws:x": "y"}})},
    ),
    "AWS-IAM-013": Example(_POLICY, "policy", {"policy": _twice("A", "A")}, {"policy": _twice("A", "B")}),
    "AWS-IAM-014": Example(
        _ROLE, _TRUST, {_TRUST: _trust({"AWS": _MISSING})}, {_TRUST: _trust({"AWS": "$admin.arn"})}
    ),
    "AWS-IAM-015": Example(_POLICY, "policy", {"policy": _long(7000)}, {"policy": _long(5000)}),
    "AWS-IAM-016": Example(_INLINE, "policy", {"policy": _long(12000)}, {"policy": _long(7000)}),
    "AWS-KMS-001": Example(_ALIAS, "name", {"name": "alias/aws/data"}),
    "AWS-KMS-002": Example(
        _KEY,
        "enableKeyRotation",
        {"enableKeyRotation": True, "customerMasterKeySpec": "RSA_2048", "keyUsage": "SIGN_VERIFY"},
        {"enableKeyRotation": True},
    ),
    "AWS-KMS-003": Example(
        _KEY,
        "rotationPeriodInDays",
        {"rotationPeriodInDays": 180},
        {"rotationPeriodInDays": 180, "enableKeyRotation": True},
    ),
    "AWS-KMS-004": Example(
        _KEY, "keyUsage", {"customerMasterKeySpec": "ECC_NIST_P256"}, {"customerMasterKeySpec": "RSA_2048"}
    ),
    "AWS-KMS-005": Example(
        _KEY,
        "policy",
        {"policy": policy(Principal={"Service": "logs.us-east-1.amazonaws.com"}, Action="kms:*")},
        {"policy": policy(Principal={"AWS": "arn:aws:iam::123456789012:root"}, Action="kms:*")},
    ),
    "AWS-KMS-006": Example(_LOGS, "kmsKeyId", {"kmsKeyId": "$plain_key.arn"}, {"kmsKeyId": "$log_key.arn"}),
    "AWS-SEC-001": Example(
        _SECRET, "recoveryWindowInDays", {"recoveryWindowInDays": 3}, {"recoveryWindowInDays": 0}
    ),
    "AWS-SEC-002": Example(_VERSION, "secretString", {"secretBinary": "AA=="}),
    "AWS-SNS-001": Example(_TOPIC, "name", {"name": "my alerts"}),
    "AWS-SNS-002": Example(_TOPIC, "name", {"fifoTopic": True}, {"fifoTopic": True, "name": "alerts.fifo"}),
    "AWS-SNS-003": Example(
        "sns/topicSubscription:TopicSubscription",
        "endpoint",
        {"endpoint": "pager"},
        {"protocol": "https", "endpoint": "https://example.com/hook"},
    ),
    "AWS-EVT-001": Example(
        _EVENTS, "eventPattern", {"eventPattern": DROP}, {"scheduleExpression": "rate(1 hour)"}
    ),
    "AWS-SNS-004": Example(
        _TOPIC,
        "contentBasedDeduplication",
        {"contentBasedDeduplication": True},
        {"contentBasedDeduplication": True, "fifoTopic": True, "name": "alerts.fifo"},
    ),
    "AWS-EVT-002": Example(
        _EVENTS,
        "eventPattern",
        {"eventPattern": '{"detail": {"RoleArn": "arn"}}'},
        {"eventPattern": '{"detail": {"RoleArn": ["arn"]}}'},
    ),
    "AWS-BUD-001": Example(_BUDGET, "limitAmount", {"limitAmount": "0"}),
    "AWS-BUD-002": Example(_BUDGET, "notifications[0]", {"notifications[0].subscriberEmailAddresses": DROP}),
    "AWS-BUD-003": Example(
        _BUDGET,
        "notifications[0].subscriberSnsTopicArns",
        {"notifications[0].subscriberSnsTopicArns": [_TOPIC_ARN, f"{_TOPIC_ARN}2"]},
        {"notifications[0].subscriberSnsTopicArns": [_TOPIC_ARN]},
    ),
    "AWS-BUD-004": Example(
        _BUDGET,
        "costTypes",
        {"costTypes": {"includeTax": True}, "budgetType": "USAGE"},
        {"costTypes": {"includeTax": True}},
    ),
    "AWS-BUD-005": Example(
        _BUDGET,
        "filterExpression",
        {
            "costFilters": [{"name": "Service", "values": ["x"]}],
            "metrics": "UnblendedCost",
            "filterExpression": {"dimensions": {"key": "SERVICE", "values": ["x"]}},
        },
        {"costFilters": [{"name": "Service", "values": ["x"]}]},
    ),
    "AWS-BUD-006": Example(
        _BUDGET,
        "metrics",
        {"filterExpression": {"dimensions": {"key": "SERVICE", "values": ["x"]}}},
        {"filterExpression": {"dimensions": {"key": "SERVICE", "values": ["x"]}}, "metrics": "UnblendedCost"},
    ),
    "AWS-BUD-007": Example(
        _BUDGET,
        "plannedLimits",
        {"plannedLimits": [{"amount": "1", "startTime": "2026-01-01_00:00", "unit": "USD"}]},
    ),
    "AWS-BUD-008": Example(
        _BUDGET,
        "costFilters[0].values[0]",
        {"costFilters": [{"name": "TagKeyValue", "values": ["team"]}]},
        {"costFilters": [{"name": "TagKeyValue", "values": ["user:team$vision"]}]},
    ),
    "AWS-CE-001": Example(_MONITOR, "monitorDimension", {"monitorDimension": "TAG"}),
    "AWS-CE-002": Example(
        _MONITOR,
        "monitorSpecification",
        {**_MANAGED, "monitorDimension": "TAG"},
        {"monitorType": "DIMENSIONAL", "monitorDimension": "TAG"},
    ),
    "AWS-CE-003": Example(
        _MONITOR,
        "monitorType",
        {**_MANAGED, "monitorDimension": "SERVICE"},
        {**_MANAGED, "monitorDimension": "LINKED_ACCOUNT"},
    ),
    "AWS-CE-004": Example(
        _SUBSCRIPTION, "subscribers[0].type", {"frequency": "IMMEDIATE"}, {"frequency": "WEEKLY"}
    ),
    "AWS-CE-005": Example(_SUBSCRIPTION, "subscribers[0].address", {"subscribers[0].address": _TOPIC_ARN}),
    "AWS-CE-006": Example(
        _SUBSCRIPTION, "thresholdExpression.dimension.values[0]", _threshold("lots"), _threshold("100")
    ),
    "AWS-TAG-001": Example(
        _TOPIC, "tags", {"tags": {f"k{index}": "v" for index in range(51)}}, {"tags": {"k": "v"}}
    ),
    "AWS-TAG-002": Example(_TOPIC, "tags", {"tags": {"k" * 129: "v"}}, {"tags": {"k" * 128: "v"}}),
    "AWS-TAG-003": Example(_TOPIC, "tags.k", {"tags": {"k": "v" * 257}}, {"tags": {"k": "v" * 256}}),
    "AWS-TAG-004": Example(_TOPIC, "tags", {"tags": {"AWS:team": "v"}}, {"tags": {"team": "v"}}),
}
