"""Examples of references, runtimes, volumes, databases, functions, queues, tables and tasks."""

import json
from typing import Any

from tests.rehearsal.aws.rules.world import DROP, Example, limit

_INSTANCE, _VOLUME = "ec2/instance:Instance", "ebs/volume:Volume"
_DATABASE, _FUNCTION = "rds/instance:Instance", "lambda/function:Function"
_QUEUE, _TABLE = "sqs/queue:Queue", "dynamodb/table:Table"
_TASK, _SERVICE = "ecs/taskDefinition:TaskDefinition", "ecs/service:Service"
_ATTACHMENT = "iam/rolePolicyAttachment:RolePolicyAttachment"
_LIFECYCLE = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
_MANAGED = "arn:aws:iam::aws:policy/"
_DEAD = "arn:aws:sqs:us-east-1:123456789012:dead"


def _redrive(count: int) -> str:
    return json.dumps({"deadLetterTargetArn": _DEAD, "maxReceiveCount": count})


def _moves(*days: int, expires: int = 0) -> list[dict[str, Any]]:
    classes = ("STANDARD_IA", "GLACIER")
    moves = [{"days": day, "storageClass": kind} for day, kind in zip(days, classes, strict=False)]
    rule: dict[str, Any] = {"id": "a", "status": "Enabled", "transitions": moves}
    return [{**rule, "expiration": {"days": expires}}] if expires else [rule]


_IN_VPC = {"vpcConfig": {"subnetIds": ["$a"], "securityGroupIds": ["$efa"]}}
_CACHE = "elasticache/replicationGroup:ReplicationGroup"

EXAMPLES: dict[str, Example] = {
    "AWS-REF-001": limit(
        "sns/topicSubscription:TopicSubscription", "subscriptionRoleArn", "arn:aws:iam::1:role/r", "r"
    ),
    "AWS-REF-002": limit(_INSTANCE, "ami", "ami-01234567", "my-image"),
    "AWS-REF-003": limit("ec2/launchTemplate:LaunchTemplate", "imageId", "resolve:ssm:/a/b", "my-image"),
    "AWS-IAM-017": limit(
        _ATTACHMENT,
        "policyArn",
        f"{_MANAGED}service-role/AWSLambdaBasicExecutionRole",
        f"{_MANAGED}AWSLambdaBasicExecutionRole",
    ),
    "AWS-IAM-018": limit(
        _ATTACHMENT, "policyArn", f"{_MANAGED}ReadOnlyAccess", f"{_MANAGED}LaterServiceAccess"
    ),
    "AWS-LAMBDA-001": limit(_FUNCTION, "runtime", "python3.13", "python2.7"),
    "AWS-LAMBDA-002": limit(_FUNCTION, "runtime", "nodejs22.x", "python3.16"),
    "AWS-LAMBDA-003": Example(
        _FUNCTION,
        "environment.variables.AWS_REGION",
        {"environment": {"variables": {"AWS_REGION": "eu"}}},
        {"environment": {"variables": {"AWS_PLACE": "eu"}}},
    ),
    "AWS-LAMBDA-005": Example(_FUNCTION, "role", {"role": "$node_role.arn"}, {"role": "$lambda_role.arn"}),
    "AWS-LAMBDA-006": Example(
        _FUNCTION,
        "role",
        {"role": "$lambda_role.arn", **_IN_VPC},
        {"role": "$vpc_lambda_role.arn", **_IN_VPC},
    ),
    "AWS-R53-001": Example("route53/record:Record", "type", {"name": "Shop.test."}),
    "AWS-LAMBDA-004": Example(
        _FUNCTION,
        "handler",
        {"handler": DROP},
        {"handler": DROP, "runtime": DROP, "packageType": "Image", "imageUri": "i"},
    ),
    "AWS-LIM-160": limit(_DATABASE, "backupRetentionPeriod", 35, 36),
    "AWS-LIM-161": limit(_DATABASE, "backupWindow", "23:30-00:30", "11pm-12pm"),
    "AWS-LIM-162": limit(_DATABASE, "maintenanceWindow", "Sun:23:30-Mon:00:30", "Sunday"),
    "AWS-LIM-163": limit(_FUNCTION, "name", "a_b-1", "a.b"),
    "AWS-LIM-164": limit(_FUNCTION, "role", "arn:aws:iam::123456789012:role/a/f", "f"),
    "AWS-LIM-165": limit(_FUNCTION, "layers", ["arn:l"] * 5, ["arn:l"] * 6),
    "AWS-LIM-166": Example(
        _FUNCTION,
        "timeout",
        {"timeout": 901},
        {
            "timeout": 5400,
            "capacityProviderConfig": {
                "lambdaManagedInstancesCapacityProviderConfig": {
                    "capacityProviderArn": "arn:aws:lambda:us-east-1:123456789012:capacity-provider:c"
                }
            },
        },
    ),
    "AWS-LIM-167": limit("lb/targetGroup:TargetGroup", "name", "a" * 32, "a" * 33),
    "AWS-LIM-168": limit(_INSTANCE, "iamInstanceProfile", "p", "arn:aws:iam::1:instance-profile/p"),
    "AWS-LIM-169": limit("ecr/repository:Repository", "name", "a/b__c", "A/b"),
    "AWS-LIM-170": limit("sqs/queue:Queue", "visibilityTimeoutSeconds", 43200, 43201),
    "AWS-LIM-171": limit("sqs/queue:Queue", "messageRetentionSeconds", 1209600, 1209601),
    "AWS-LIM-172": limit("sqs/queue:Queue", "receiveWaitTimeSeconds", 20, 21),
    "AWS-LIM-173": limit("sqs/queue:Queue", "maxMessageSize", 1048576, 1048577),
    "AWS-LIM-174": limit("lambda/function:Function", "memorySize", 32768, 32769),
    "AWS-LIM-175": limit("lambda/function:Function", "ephemeralStorage.size", 32768, 32769),
    "AWS-LIM-176": limit("lb/targetGroup:TargetGroup", "healthCheck.interval", 300, 301),
    "AWS-LIM-177": limit("lb/targetGroup:TargetGroup", "healthCheck.healthyThreshold", 10, 11),
    "AWS-LIM-178": limit("lb/targetGroup:TargetGroup", "healthCheck.timeout", 120, 121),
    "AWS-LIM-179": limit("cloudwatch/metricAlarm:MetricAlarm", "evaluationPeriods", 1, 0),
    "AWS-CW-001": limit("cloudwatch/metricAlarm:MetricAlarm", "period", 120, 45),
    "AWS-ASG-002": limit("autoscaling/group:Group", "minSize", 2, 3),
    "AWS-RDS-041": limit(_DATABASE, "dbName", "my_db1", "my-db"),
    "AWS-RDS-042": limit(
        _DATABASE,
        "backupWindow",
        "02:00-03:00",
        "23:30-00:30",
        maintenanceWindow="Sun:00:00-Sun:01:00",
        backupRetentionPeriod=7,
    ),
    "AWS-RDS-030": limit(_DATABASE, "password", "eight-ch", "short"),
    "AWS-RDS-031": limit(_DATABASE, "username", "admin1", "admin"),
    "AWS-RDS-032": limit(_DATABASE, "allocatedStorage", 5, 4),
    "AWS-RDS-033": Example(
        _DATABASE,
        "iops",
        {"storageType": "io1", "allocatedStorage": 100, "iops": 6000},
        {"storageType": "io1", "allocatedStorage": 100, "iops": 5000},
    ),
    "AWS-RDS-034": Example(
        _DATABASE,
        "iops",
        {"storageType": "gp3", "allocatedStorage": 399, "iops": 12000},
        {"storageType": "gp3", "allocatedStorage": 400, "iops": 12000},
    ),
    "AWS-RDS-035": limit(_DATABASE, "maxAllocatedStorage", 21, 20),
    "AWS-RDS-036": Example(
        _DATABASE,
        "storageEncrypted",
        {"kmsKeyId": "$plain_key.arn"},
        {"kmsKeyId": "$plain_key.arn", "storageEncrypted": True},
    ),
    "AWS-RDS-037": Example(
        _DATABASE,
        "availabilityZone",
        {"multiAz": True, "availabilityZone": "us-east-1a"},
        {"multiAz": False, "availabilityZone": "us-east-1a"},
    ),
    "AWS-RDS-038": Example(
        _DATABASE,
        "allocatedStorage",
        {"allocatedStorage": DROP},
        {"allocatedStorage": DROP, "snapshotIdentifier": "s"},
    ),
    "AWS-RDS-039": Example(
        _DATABASE, "password", {"password": DROP}, {"password": DROP, "manageMasterUserPassword": True}
    ),
    "AWS-RDS-040": Example(
        _DATABASE,
        "password",
        {"manageMasterUserPassword": True},
        {"manageMasterUserPassword": True, "password": DROP},
    ),
    "AWS-SQS-001": Example(
        _QUEUE, "name", {"name": "q", "fifoQueue": True}, {"name": "q.fifo", "fifoQueue": True}
    ),
    "AWS-SQS-002": limit(_QUEUE, "redrivePolicy", _redrive(1000), _redrive(0)),
    "AWS-DDB-001": Example(
        _TABLE,
        "rangeKey",
        {"rangeKey": "day"},
        {"rangeKey": "day", "attributes[1]": {"name": "day", "type": "S"}},
    ),
    "AWS-DDB-003": Example(
        _TABLE,
        "streamViewType",
        {"streamEnabled": True},
        {"streamEnabled": True, "streamViewType": "NEW_IMAGE"},
    ),
    "AWS-CACHE-001": Example(
        _CACHE,
        "automaticFailoverEnabled",
        {"multiAzEnabled": True},
        {"multiAzEnabled": True, "automaticFailoverEnabled": True},
    ),
    "AWS-CACHE-002": Example(
        _CACHE,
        "numCacheClusters",
        {"automaticFailoverEnabled": True, "numCacheClusters": 1},
        {"automaticFailoverEnabled": True, "numCacheClusters": 2},
    ),
    "AWS-REF-004": Example(
        "ebs/volume:Volume",
        "availabilityZone",
        {"availabilityZone": "eu-west-1a"},
        {"availabilityZone": "us-east-1-bos-1a"},
    ),
    "AWS-DDB-002": Example(
        _TABLE,
        "writeCapacity",
        {"billingMode": "PROVISIONED", "readCapacity": 1},
        {"billingMode": "PROVISIONED", "readCapacity": 1, "writeCapacity": 1},
    ),
    "AWS-ECS-001": Example(_TASK, "cpu", {"cpu": "300"}, {"cpu": ".25 vCPU", "memory": "2 GB"}),
    "AWS-ECS-002": limit(_TASK, "networkMode", "awsvpc", "bridge"),
    "AWS-ECS-003": limit(_TASK, "containerDefinitions", '[{"name": "a", "image": "b"}]', '[{"name": "a"}]'),
    "AWS-ECS-004": Example(
        _SERVICE,
        "networkConfiguration",
        {"launchType": "FARGATE"},
        {"launchType": "FARGATE", "networkConfiguration": {"subnets": ["$a"]}},
    ),
    "AWS-ECS-005": Example(
        _SERVICE,
        "deploymentMaximumPercent",
        {"deploymentMinimumHealthyPercent": 100, "deploymentMaximumPercent": 100},
        {"deploymentMinimumHealthyPercent": 100, "deploymentMaximumPercent": 200},
    ),
    "AWS-S3-016": limit(_LIFECYCLE, "rules", _moves(30, 60), _moves(10), "rules[0].transitions[0].days"),
    "AWS-S3-017": limit(
        _LIFECYCLE, "rules", _moves(30, expires=31), _moves(30, expires=30), "rules[0].expiration.days"
    ),
    "AWS-VPC-021": Example(
        "ec2/route:Route",
        "destinationCidrBlock",
        {"destinationCidrBlock": "10.0.0.0/24"},
        {"destinationCidrBlock": "11.0.0.0/24"},
    ),
    "AWS-VPC-022": limit("ec2/route:Route", "destinationCidrBlock", "11.0.0.0/24", "11.0.0.1/24"),
}
