"""Computed outputs of AWS resources, for mocks."""

import json

from tests.components.graph import Computed

# Of repetitions, with their names alone.
_REQUESTS = {
    "sagemaker": '{"TrainingJobName": "smoke-scheduled"}',
    "vertex": '{"displayName": "smoke-scheduled"}',
}
COMPUTED: Computed = {
    "aws:eks/cluster:Cluster": lambda args: {
        "endpoint": "https://k8s.example",
        "certificateAuthority": {"data": "Q0E="},
        "vpcConfig": {**args.inputs["vpcConfig"], "clusterSecurityGroupId": "sg-cluster"},
    },
    "aws:ec2/launchTemplate:LaunchTemplate": lambda _: {"latestVersion": 1},
    "aws:eks/nodeGroup:NodeGroup": lambda args: {
        "nodeGroupName": args.name,
        "resources": [{"autoscalingGroups": [{"name": f"{args.name}-group"}]}],
    },
    "aws:rds/cluster:Cluster": lambda _: {
        "endpoint": "database.example",
        "masterUserSecrets": [{"secretArn": "arn:aws:secretsmanager:::secret:database"}],
    },
    "pulumi-python:dynamic/trainstack:JobGate": lambda args: {
        "job": "smoke-0123456789-261126120000",
        "result_uri": f"{args.inputs['results_uri']}/smoke-0123456789-261126120000/result.json",
        "headline": "PASS",
        "scheduled": args.inputs["scheduled_plan"] and _REQUESTS[args.inputs["service"]],
    },
    "aws:cloudcontrol/resource:Resource": lambda args: {
        "properties": json.dumps({"Id": f"pcs_{args.name}", "Arn": f"arn:aws:pcs:::{args.name}"}),
    },
    "aws:ssm/association:Association": lambda args: {"associationId": args.name},
    "aws:fsx/lustreFileSystem:LustreFileSystem": lambda _: {"dnsName": "fs.example", "mountName": "abcdef"},
}
