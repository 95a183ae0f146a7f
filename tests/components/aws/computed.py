"""What AWS says about resources besides their inputs, for mocks."""

from tests.components.graph import Computed

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
        "masterUserSecrets": [{"secretArn": "database-secret"}],
    },
    "aws:fsx/lustreFileSystem:LustreFileSystem": lambda _: {"dnsName": "fs.example", "mountName": "abcdef"},
}
