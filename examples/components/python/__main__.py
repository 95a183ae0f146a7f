"""An EKS cluster with a pool of GPU nodes, with a provider of the program's own."""

import pulumi
import pulumi_aws as aws
import pulumi_trainstack as trainstack

REGION = pulumi.Config("aws").require("region")
ZONES = [f"{REGION}a", f"{REGION}b"]
ADMIN = "arn:aws:iam::123456789012:role/platform"

account = aws.Provider("training", region=REGION, default_tags={"tags": {"stack": pulumi.get_stack()}})
options = pulumi.ResourceOptions(providers={"aws": account})

network = trainstack.AwsNetwork(
    "training",
    region=REGION,
    cidr="10.20.0.0/16",
    zones=ZONES,
    nat_per_zone=False,
    flow_log_retention_days=30,
    interface_endpoints=[],
    opts=options,
)
cluster = trainstack.AwsCluster(
    "training",
    region=REGION,
    name="training",
    kubernetes_version="1.35",
    subnet_ids=network.private_subnet_ids,
    endpoint_public_access_cidrs=[],
    admin_principal_arns=[ADMIN],
    log_retention_days=30,
    system_pool={"machine": "m7i.large", "min_nodes": 2, "max_nodes": 3},
    addons=["vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "aws-ebs-csi-driver"],
    opts=options,
)
disk_key = aws.kms.get_key_output(key_id="alias/aws/ebs", opts=pulumi.InvokeOutputOptions(provider=account))
gpus = trainstack.AwsGpuPool(
    "training-l4",
    pool="l4",
    purpose="training",
    cluster_name=cluster.cluster_name,
    kubernetes_version=cluster.kubernetes_version,
    node_role_arn=cluster.node_role_arn,
    cluster_security_group_id=cluster.security_group_id,
    machine="g6.xlarge",
    # The zones must be known; the ids of their subnets are outputs.
    subnets={zone: network.private_subnet_id_by_zone[zone] for zone in ZONES},
    rdma=False,
    purchase="spot",
    min_nodes=0,
    max_nodes=4,
    disk_gib=100,
    disk_key_arn=disk_key.arn,
    repair={"at_once": 1, "stop_above": 2, "rules": []},
    labels={},
    tags={},
    launch_tags={},
    opts=options,
)

pulumi.export("cluster", cluster.cluster_name)
pulumi.export("node_groups", gpus.node_group_names)
