"""Cluster Autoscaler: adds nodes when jobs are admitted and removes idle ones."""

from typing import TypedDict

import pulumi

from components.aws import iam
from components.aws.pod_role import AwsPodRole
from components.base import Component, Options
from components.kubernetes.charts import charts, release
from components.ordering import after

SERVICE_ACCOUNT = "cluster-autoscaler"
# EKS puts this tag on the Auto Scaling group of every managed node group, with "owned" as its value.
_OWNER_TAG = "k8s.io/cluster-autoscaler"
_OF_PLACES = (
    "topology.ebs.csi.aws.com/zone",
    "topology.k8s.aws/zone-id",
    *(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3)),
)


class AwsAutoscalingArgs(TypedDict):
    """The cluster whose pools are scaled, and the idle time of nodes."""

    region: str
    """The provider's region."""
    cluster_name: str
    """The EKS cluster; its managed node groups are found by the tag that EKS gives them."""
    cluster_arn: pulumi.Input[str]
    """ARN of the cluster."""
    idle_minutes: int
    """Minutes for which a node must be idle before it is removed."""


class AwsAutoscaling(Component):
    """Cluster Autoscaler with permissions to resize this cluster's node groups and no others.

    Without it a pool at zero nodes stays there, whatever is queued. Needs an AWS and a Kubernetes provider
    (`providers=[aws, kubernetes]`).
    """

    release_name: pulumi.Output[str]
    """The Helm release; what uses it comes after the autoscaler runs."""

    def __init__(self, name: str, args: AwsAutoscalingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        role = AwsPodRole(
            f"{name}-pods",
            {
                "cluster_name": args["cluster_name"],
                "cluster_arn": args["cluster_arn"],
                "namespace": charts()["cluster-autoscaler"].namespace,
                "service_account": SERVICE_ACCOUNT,
                "policy": autoscaler_rights(args["cluster_name"]),
            },
            self.child(),
        )
        values = {
            "cloudProvider": "aws",
            "awsRegion": args["region"],
            "autoDiscovery": {"clusterName": args["cluster_name"]},
            "rbac": {"serviceAccount": {"name": SERVICE_ACCOUNT}},
            "replicaCount": 2,
            "resources": {"requests": {"cpu": "100m", "memory": "600Mi"}, "limits": {"memory": "600Mi"}},
            "extraArgs": {
                # Of the pools that fit, the one that leaves least unused: no GPU node for work without GPUs.
                "expander": "least-waste",
                "scale-down-unneeded-time": f"{args['idle_minutes']}m",
                "scale-down-delay-after-add": "10m",
                # Large GPU nodes take longer to be ready than the 15 minutes that are the default.
                "max-node-provision-time": "25m",
                # Jobs are not moved: a node is removed when it has none. Autoscalers before 1.34.3 and 1.35
                # keep empty nodes with this (kubernetes/autoscaler#8975).
                "scale-down-gpu-utilization-threshold": 0,
                "skip-nodes-with-system-pods": False,
                "skip-nodes-with-local-storage": False,
                # One zone's group may be out of capacity while another's is not.
                "balance-similar-node-groups": True,
                # Labels that differ from zone to zone or node to node, or no two groups are similar: of the
                # driver of volumes and of the AWS cloud provider (kubernetes/cloud-provider-aws,
                # pkg/providers/v1/well_known_labels.go). The chart cuts a key at "_", which repeats a flag.
                **{f"balancing-ignore-label_{index}": label for index, label in enumerate(_OF_PLACES, 1)},
            },
        }
        installed = release(
            name, "cluster-autoscaler", values, self.child(pulumi.ResourceOptions(depends_on=[role]))
        )
        self.release_name = after(pulumi.Output.from_input("cluster-autoscaler"), [installed])
        self.register_declared()


def autoscaler_rights(cluster_name: str) -> str:
    """See every group (AWS has no narrower right to look), resize those of one cluster.

    Source: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md, "Full Cluster Autoscaler
    Features Policy".
    """
    looking = iam.allow(
        [
            "autoscaling:DescribeAutoScalingGroups",
            "autoscaling:DescribeAutoScalingInstances",
            "autoscaling:DescribeLaunchConfigurations",
            "autoscaling:DescribeScalingActivities",
            "autoscaling:DescribeTags",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeLaunchTemplateVersions",
            "ec2:GetInstanceTypesFromInstanceRequirements",
            "eks:DescribeNodegroup",
        ],
        ["*"],
    )
    resizing = {
        **iam.allow(
            ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"], ["*"]
        ),
        "Condition": {"StringEquals": {f"aws:ResourceTag/{_OWNER_TAG}/{cluster_name}": "owned"}},
    }
    return iam.document(looking, resizing)
