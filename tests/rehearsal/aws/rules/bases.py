"""Valid inputs of every type with an example; examples change them."""

import json
from typing import Any


def _policy(**more: Any) -> str:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


_DISK = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 100, "volumeType": "gp3"}}
_EFA = [
    {"networkCardIndex": card, "deviceIndex": 1 if card else 0, "interfaceType": "efa"} for card in range(4)
]
_ROLE = "arn:aws:iam::123456789012:role/worker"
_RULE = {"id": "old", "status": "Enabled", "expiration": {"days": 30}}
_NOTICE = {
    "comparisonOperator": "GREATER_THAN",
    "notificationType": "ACTUAL",
    "threshold": 80,
    "thresholdType": "PERCENTAGE",
    "subscriberEmailAddresses": ["a@example.com"],
}
_RULE_OF_GROUP = {
    "securityGroupId": "$efa",
    "ipProtocol": "tcp",
    "fromPort": 443,
    "toPort": 443,
    "cidrIpv4": "10.0.0.0/8",
}
_CONTAINER = {"image": "i"}
_PROVIDER = {
    "issuer": "https://id.example.com",
    "authorizationEndpoint": "https://id.example.com/authorize",
    "tokenEndpoint": "https://id.example.com/token",
    "userInfoEndpoint": "https://id.example.com/me",
    "clientId": "mlflow",
    "clientSecret": "s",
}

BASES: dict[str, dict[str, Any]] = {
    "cloudcontrol/resource:Resource": {
        "typeName": "AWS::PCS::Queue",
        "desiredState": json.dumps({"ClusterId": "$pcs", "Name": "queue"}),
    },
    "ec2/vpc:Vpc": {"cidrBlock": "10.9.0.0/16"},
    "ec2/subnet:Subnet": {"vpcId": "$vpc", "cidrBlock": "10.0.9.0/24", "availabilityZone": "us-east-1a"},
    "ec2/vpcEndpoint:VpcEndpoint": {
        "vpcId": "$vpc",
        "serviceName": "com.amazonaws.us-east-1.ec2",
        "vpcEndpointType": "Interface",
        "subnetIds": ["$a", "$b"],
    },
    "ec2/flowLog:FlowLog": {
        "vpcId": "$vpc",
        "iamRoleArn": _ROLE,
        "logDestination": "arn:l",
        "trafficType": "ALL",
    },
    "ec2/internetGateway:InternetGateway": {"vpcId": "$bare"},
    "ec2/natGateway:NatGateway": {"subnetId": "$a", "allocationId": "eipalloc-0123456789abcdef0"},
    "ec2/route:Route": {
        "routeTableId": "$table",
        "destinationCidrBlock": "10.50.0.0/16",
        "gatewayId": "$igw",
    },
    "ec2/securityGroup:SecurityGroup": {"name": "web", "vpcId": "$vpc"},
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": _RULE_OF_GROUP,
    "ec2/securityGroupRule:SecurityGroupRule": {
        "type": "ingress",
        "securityGroupId": "$efa",
        "protocol": "tcp",
        "fromPort": 443,
        "toPort": 443,
        "cidrBlocks": ["10.0.0.0/8"],
    },
    "lb/loadBalancer:LoadBalancer": {"subnets": ["$a", "$b"], "securityGroups": ["$efa"], "internal": True},
    "lb/targetGroup:TargetGroup": {"vpcId": "$vpc", "port": 30050, "protocol": "HTTP"},
    "lb/listener:Listener": {
        "loadBalancerArn": "arn:b",
        "port": 443,
        "protocol": "HTTPS",
        "certificateArn": "arn:c",
        "defaultActions": [
            {"type": "authenticate-oidc", "order": 1, "authenticateOidc": _PROVIDER},
            {"type": "forward", "order": 2, "targetGroupArn": "arn:g"},
        ],
    },
    "autoscaling/attachment:Attachment": {
        "autoscalingGroupName": "$workers.name",
        "lbTargetGroupArn": "arn:g",
    },
    "ec2/launchTemplate:LaunchTemplate": {
        "name": "pool",
        "instanceType": "p4d.24xlarge",
        "networkInterfaces": _EFA,
        "blockDeviceMappings": [_DISK],
    },
    "ec2/instance:Instance": {
        "ami": "ami-0123456789abcdef0",
        "instanceType": "m7i.large",
        "rootBlockDevice": {"volumeType": "gp3", "volumeSize": 100},
    },
    "ebs/volume:Volume": {"availabilityZone": "us-east-1a", "type": "gp3", "size": 100},
    "ecs/taskDefinition:TaskDefinition": {
        "family": "web",
        "containerDefinitions": '[{"name": "web", "image": "nginx"}]',
        "cpu": "256",
        "memory": "512",
        "networkMode": "awsvpc",
        "requiresCompatibilities": ["FARGATE"],
    },
    "ecs/service:Service": {"name": "web", "launchType": "EC2"},
    "ecr/repository:Repository": {"name": "team/web"},
    "elasticache/replicationGroup:ReplicationGroup": {
        "replicationGroupId": "cache",
        "description": "cache",
        "nodeType": "cache.t4g.small",
        "engine": "redis",
        "numCacheClusters": 2,
    },
    "elasticache/cluster:Cluster": {"clusterId": "c", "engine": "redis", "nodeType": "cache.t4g.micro"},
    "lambda/function:Function": {
        "name": "f",
        "role": "arn:aws:iam::123456789012:role/f",
        "runtime": "python3.13",
        "handler": "main.run",
    },
    "sqs/queue:Queue": {"name": "q"},
    "route53/record:Record": {
        "zoneId": "$zone",
        "name": "www.shop.test",
        "type": "CNAME",
        "ttl": 60,
        "records": ["a.test"],
    },
    "autoscaling/group:Group": {"minSize": 0, "maxSize": 2},
    "cloudwatch/metricAlarm:MetricAlarm": {
        "name": "a",
        "comparisonOperator": "GreaterThanThreshold",
        "evaluationPeriods": 1,
    },
    "dynamodb/table:Table": {
        "name": "t",
        "billingMode": "PAY_PER_REQUEST",
        "hashKey": "id",
        "attributes": [{"name": "id", "type": "S"}],
    },
    "ec2/placementGroup:PlacementGroup": {"name": "near", "strategy": "cluster"},
    "ec2/capacityReservation:CapacityReservation": {
        "availabilityZone": "us-east-1a",
        "instanceCount": 2,
        "instancePlatform": "Linux/UNIX",
        "instanceType": "p4d.24xlarge",
    },
    "eks/cluster:Cluster": {
        "name": "new",
        "roleArn": "$eks_role.arn",
        "vpcConfig": {"subnetIds": ["$a", "$b"]},
    },
    "eks/nodeGroup:NodeGroup": {
        "clusterName": "$cluster",
        "nodeGroupName": "pool",
        "nodeRoleArn": "$node_role.arn",
        "subnetIds": ["$a"],
        "scalingConfig": {"minSize": 0, "desiredSize": 1, "maxSize": 2},
        "amiType": "AL2023_x86_64_NVIDIA",
        "launchTemplate": {"id": "$lt_efa", "version": "1"},
    },
    "eks/accessEntry:AccessEntry": {"clusterName": "$cluster", "principalArn": _ROLE},
    "eks/accessPolicyAssociation:AccessPolicyAssociation": {
        "clusterName": "$cluster",
        "principalArn": "$admin.arn",
        "accessScope": {"type": "cluster"},
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
    },
    "eks/addon:Addon": {
        "clusterName": "$cluster",
        "addonName": "coredns",
        "resolveConflictsOnCreate": "OVERWRITE",
    },
    "eks/podIdentityAssociation:PodIdentityAssociation": {
        "clusterName": "$cluster",
        "namespace": "n",
        "serviceAccount": "s",
        "roleArn": "$pod_role.arn",
    },
    "fsx/lustreFileSystem:LustreFileSystem": {
        "subnetIds": "$a",
        "deploymentType": "PERSISTENT_2",
        "perUnitStorageThroughput": 250,
        "storageCapacity": 1200,
    },
    "fsx/dataRepositoryAssociation:DataRepositoryAssociation": {
        "fileSystemId": "$fs",
        "fileSystemPath": "/new",
        "dataRepositoryPath": "s3://$bucket/new",
    },
    "efs/fileSystem:FileSystem": {"encrypted": True},
    "efs/mountTarget:MountTarget": {"fileSystemId": "$homes", "subnetId": "$b"},
    "efs/accessPoint:AccessPoint": {"fileSystemId": "$homes"},
    "s3/bucket:Bucket": {"bucket": "my-bucket"},
    "s3/directoryBucket:DirectoryBucket": {
        "bucket": "fast--use1-az4--x-s3",
        "location": {"name": "use1-az4", "type": "AvailabilityZone"},
    },
    "s3/bucketVersioning:BucketVersioning": {
        "bucket": "$bucket",
        "versioningConfiguration": {"status": "Enabled"},
    },
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": {
        "bucket": "$bucket",
        "rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}],
    },
    "s3/bucketPolicy:BucketPolicy": {
        "bucket": "$bucket",
        "policy": _policy(Principal="*", Resource="arn:aws:s3:::$bucket/*"),
    },
    "s3/bucketAcl:BucketAcl": {"bucket": "$owned", "acl": "private"},
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": {"bucket": "$bucket", "rules": [_RULE]},
    "rds/cluster:Cluster": {
        "clusterIdentifier": "db",
        "engine": "aurora-postgresql",
        "manageMasterUserPassword": True,
        "masterUsername": "root1",
        "skipFinalSnapshot": True,
        "serverlessv2ScalingConfiguration": {"minCapacity": 0.5, "maxCapacity": 4},
    },
    "rds/clusterInstance:ClusterInstance": {
        "clusterIdentifier": "$aurora",
        "engine": "aurora-postgresql",
        "instanceClass": "db.serverless",
    },
    "rds/instance:Instance": {
        "identifier": "db",
        "engine": "postgres",
        "engineVersion": "16",
        "instanceClass": "db.t4g.micro",
        "allocatedStorage": 20,
        "username": "root1",
        "password": "longenough",
    },
    "rds/subnetGroup:SubnetGroup": {"subnetIds": ["$a", "$b"]},
    "iam/role:Role": {
        "name": "worker",
        "assumeRolePolicy": json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "sts:AssumeRole",
                        "Principal": {"Service": "ec2.amazonaws.com"},
                    }
                ],
            }
        ),
    },
    "iam/rolePolicyAttachment:RolePolicyAttachment": {
        "role": "$admin",
        "policyArn": "arn:aws:iam::aws:policy/AmazonS3FullAccess",
    },
    "iam/policy:Policy": {"name": "reads", "policy": _policy()},
    "iam/rolePolicy:RolePolicy": {"role": "$admin", "policy": _policy()},
    "kms/key:Key": {"description": "key"},
    "kms/alias:Alias": {"name": "alias/data", "targetKeyId": "1"},
    "secretsmanager/secret:Secret": {"name": "admin"},
    "secretsmanager/secretVersion:SecretVersion": {"secretId": "x", "secretString": "value"},
    "sns/topic:Topic": {"name": "alerts"},
    "sns/topicSubscription:TopicSubscription": {
        "topic": "t",
        "protocol": "email",
        "endpoint": "a@example.com",
    },
    "cloudwatch/eventRule:EventRule": {"name": "ended", "eventPattern": '{"source": ["aws.sagemaker"]}'},
    "cloudwatch/logGroup:LogGroup": {"name": "/stack/flow", "retentionInDays": 30},
    "budgets/budget:Budget": {
        "name": "month",
        "budgetType": "COST",
        "timeUnit": "MONTHLY",
        "limitAmount": "100",
        "limitUnit": "USD",
        "notifications": [_NOTICE],
    },
    "costexplorer/anomalyMonitor:AnomalyMonitor": {
        "name": "m",
        "monitorType": "CUSTOM",
        "monitorSpecification": "{}",
    },
    "costexplorer/anomalySubscription:AnomalySubscription": {
        "name": "s",
        "frequency": "DAILY",
        "monitorArnLists": ["arn:aws:ce::123456789012:anomalymonitor/m"],
        "subscribers": [{"type": "EMAIL", "address": "a@example.com"}],
    },
    "sagemaker/model:Model": {
        "name": "m",
        "executionRoleArn": "$sage_role.arn",
        "primaryContainer": _CONTAINER,
    },
    "sagemaker/notebookInstance:NotebookInstance": {
        "name": "n",
        "roleArn": "$sage_role.arn",
        "instanceType": "ml.t3.medium",
    },
    "sagemaker/pipeline:Pipeline": {
        "pipelineName": "p",
        "pipelineDisplayName": "p",
        "roleArn": "$sage_role.arn",
        "pipelineDefinition": "{}",
    },
    "sagemaker/mlflowTrackingServer:MlflowTrackingServer": {
        "trackingServerName": "t",
        "roleArn": "$sage_role.arn",
        "artifactStoreUri": "s3://$bucket/mlflow",
    },
    "sagemaker/featureGroup:FeatureGroup": {
        "featureGroupName": "f",
        "recordIdentifierFeatureName": "id",
        "eventTimeFeatureName": "t",
        "roleArn": "$sage_role.arn",
        "featureDefinitions": [{"featureName": "id", "featureType": "String"}],
        "onlineStoreConfig": {"enableOnlineStore": True},
    },
    "sagemaker/domain:Domain": {
        "domainName": "d",
        "authMode": "IAM",
        "vpcId": "$vpc",
        "subnetIds": ["$a"],
        "defaultUserSettings": {"executionRole": "$sage_role.arn"},
        "retentionPolicy": {"homeEfsFileSystem": "Delete"},
    },
    "scheduler/schedule:Schedule": {
        "scheduleExpression": "cron(0 5 ? * MON *)",
        "flexibleTimeWindow": {"mode": "OFF"},
        "target": {
            "arn": "arn:aws:scheduler:::aws-sdk:sagemaker:createTrainingJob",
            "roleArn": "$of_a_group.arn",
        },
    },
}
