"""AWS rights for the pods of one service account."""

from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.base import Component
from components.kubernetes.tracking.pod import GrantsArgs
from components.ordering import after

# Where the agent of EKS Pod Identity answers on every node. Source: EKS user guide, "EKS Pod Identity".
POD_IDENTITY_AGENT = "169.254.170.23/32"


class AwsPodRoleArgs(TypedDict):
    """Whose pods may do what."""

    cluster_name: pulumi.Input[str]
    """EKS cluster with the pod identity agent."""
    cluster_arn: pulumi.Input[str]
    namespace: str
    service_account: str
    """The service account; it need not exist yet."""
    policy: pulumi.Input[str]
    """What it may do: an IAM policy document, as JSON."""


class AwsPodRole(Component):
    """A role that EKS Pod Identity hands to exactly one service account of one cluster."""

    role_arn: pulumi.Output[str]
    """The role; what uses it comes after its policy and its association."""

    def __init__(self, name: str, args: AwsPodRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        namespace, account = args["namespace"], args["service_account"]
        trust = pulumi.Output.from_input(args["cluster_arn"]).apply(
            lambda arn: iam.pod_identity_trust(arn, namespace, account)
        )
        role = iam.role(self, f"{name}-role", trust)
        policy = aws.iam.RolePolicy(
            f"{name}-rights", role=role.name, policy=args["policy"], opts=self.child()
        )
        association = aws.eks.PodIdentityAssociation(
            f"{name}-identity",
            cluster_name=args["cluster_name"],
            namespace=namespace,
            service_account=account,
            role_arn=role.arn,
            # A pod that starts before the role may do its work gets credentials that do not work yet.
            opts=self.child(pulumi.ResourceOptions(depends_on=[policy])),
        )
        self.role_arn = after(role.arn, [association])
        self.register_outputs({"role_arn": self.role_arn})


def pod_identity(region: str) -> GrantsArgs:
    """How EKS hands a pod the credentials of its service account's role."""
    return {"environment": {"AWS_REGION": region}, "agents": [{"cidr": POD_IDENTITY_AGENT, "port": 80}]}


def secret_reader(*, region: str, secret_arn: str, key_arn: str) -> str:
    """A policy to read one secret, with a key that works only through Secrets Manager."""
    key = {
        **iam.allow(["kms:Decrypt"], [key_arn]),
        "Condition": {"StringEquals": {"kms:ViaService": [f"secretsmanager.{region}.amazonaws.com"]}},
    }
    return iam.document(iam.allow(["secretsmanager:GetSecretValue"], [secret_arn]), key)
