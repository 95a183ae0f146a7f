"""AWS permissions of the pods of one service account."""

from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.base import Component, Options
from components.kubernetes.tracking.pod import GrantsArgs
from components.ordering import after

# Address of the agent of EKS Pod Identity on every node. Source: EKS user guide, "EKS Pod Identity".
POD_IDENTITY_AGENT = "169.254.170.23/32"


class AwsPodRoleArgs(TypedDict):
    """The pods, and their permissions."""

    cluster_name: pulumi.Input[str]
    """EKS cluster with the pod identity agent."""
    cluster_arn: pulumi.Input[str]
    """ARN of the cluster."""
    namespace: str
    """Namespace of the service account."""
    service_account: str
    """The service account; it need not exist yet."""
    policy: pulumi.Input[str]
    """Its permissions: an IAM policy document, as JSON."""


class AwsPodRole(Component):
    """A role that EKS Pod Identity grants to exactly one service account of one cluster."""

    role_arn: pulumi.Output[str]
    """The role; dependents come after its policy and its association."""

    def __init__(self, name: str, args: AwsPodRoleArgs, opts: Options = None) -> None:
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
            # A pod that starts before the role has its policy gets credentials without permissions.
            opts=self.child(pulumi.ResourceOptions(depends_on=[policy])),
        )
        self.role_arn = after(role.arn, [association])
        self.register_declared()


def pod_identity(region: str) -> GrantsArgs:
    """Access of pods to the credentials of their service account's role on EKS."""
    return {"environment": {"AWS_REGION": region}, "agents": [{"cidr": POD_IDENTITY_AGENT, "port": 80}]}


def secret_reader(*, region: str, secret_arn: str, key_arn: str) -> str:
    """A policy to read one secret, with a key that works only through Secrets Manager."""
    key = {
        **iam.allow(["kms:Decrypt"], [key_arn]),
        "Condition": {"StringEquals": {"kms:ViaService": [f"secretsmanager.{region}.amazonaws.com"]}},
    }
    return iam.document(iam.allow(["secretsmanager:GetSecretValue"], [secret_arn]), key)
