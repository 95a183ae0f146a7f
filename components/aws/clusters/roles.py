"""Roles by which the dispatcher of a manager logs in to EKS clusters, also in other accounts."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import current_account
from components.base import Component, Options
from components.ordering import after
from infra.naming import dispatcher_role, login_role

# The session tags of EKS Pod Identity go along when its role assumes another one (pod-id-abac in the EKS user
# guide).
_ASSUME = ("sts:AssumeRole", "sts:TagSession")


class AwsDispatcherRoleArgs(TypedDict):
    """The pod of the dispatcher, and the roles that it may assume."""

    stack: str
    """Name of the manager's stack, after which the role is named: workers trust it before it exists."""
    cluster_name: pulumi.Input[str]
    """EKS cluster of the manager."""
    cluster_arn: pulumi.Input[str]
    """Its ARN."""
    namespace: str
    """Namespace of the dispatcher."""
    service_account: str
    """Its service account."""
    roles: Sequence[str]
    """ARNs of the roles on workers. Without one, the role has no permissions."""


class AwsDispatcherRole(Component):
    """The role of the dispatcher's pod: it may assume the roles of workers, and nothing else."""

    role_arn: pulumi.Output[str]
    """The role; dependents come after its permissions and its association."""

    def __init__(self, name: str, args: AwsDispatcherRoleArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        namespace, account = args["namespace"], args["service_account"]
        role = aws.iam.Role(
            f"{name}-role",
            name=dispatcher_role(args["stack"]),
            description=f"Dispatcher of {args['stack']}: logs in to its clusters",
            assume_role_policy=pulumi.Output.from_input(args["cluster_arn"]).apply(
                lambda arn: iam.pod_identity_trust(arn, namespace, account)
            ),
            opts=self.child(),
        )
        needs: list[pulumi.Resource] = []
        if args["roles"]:
            policy = iam.document(iam.allow(_ASSUME, sorted(args["roles"])))
            needs.append(
                aws.iam.RolePolicy(f"{name}-rights", role=role.name, policy=policy, opts=self.child())
            )
        association = aws.eks.PodIdentityAssociation(
            f"{name}-identity",
            cluster_name=args["cluster_name"],
            namespace=namespace,
            service_account=account,
            role_arn=role.arn,
            opts=self.child(pulumi.ResourceOptions(depends_on=needs)),
        )
        self.role_arn = after(role.arn, [association])
        self.register_declared()


class AwsManagerLoginArgs(TypedDict):
    """The dispatcher of the manager, and what it is in the API server of a worker."""

    stack: str
    """Name of the worker's stack, after which the role is named."""
    manager: str
    """Name of the manager's stack."""
    manager_account: str
    """AWS account of the manager."""
    cluster_name: pulumi.Input[str]
    """EKS cluster of the worker."""
    security_group_id: pulumi.Input[str]
    """Security group of its control plane."""
    manager_cidr: str
    """Range of the manager's network, from which the API server is reached."""
    group: str
    """Kubernetes group of the login; role bindings grant its permissions."""


class AwsManagerLogin(Component):
    """A role that exactly the manager's dispatcher may assume, and its access entry.

    EKS refuses an access entry of a principal that does not exist, and IAM a trust that names such a role. So
    the role is one of the worker, and its trust names the manager's account with the ARN of the dispatcher's
    role as a condition: a worker exists before its manager, and outlives it.
    """

    role_arn: pulumi.Output[str]
    """The role; dependents come after its access entry."""

    def __init__(self, name: str, args: AwsManagerLoginArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        manager, account = args["manager"], args["manager_account"]

        def trusted(partition: str) -> str:
            start = f"arn:{partition}:iam::{account}"
            return iam.document(
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": f"{start}:root"},
                    "Action": list(_ASSUME),
                    "Condition": {
                        "ArnEquals": {"aws:PrincipalArn": f"{start}:role/{dispatcher_role(manager)}"}
                    },
                }
            )

        # No policy: `sts:GetCallerIdentity`, which EKS calls with its login, needs no permission.
        role = aws.iam.Role(
            f"{name}-role",
            name=login_role(args["stack"]),
            description=f"Login of the dispatcher of {manager} to {args['stack']}",
            assume_role_policy=current_account(self).apply(lambda own: trusted(own.partition)),
            max_session_duration=3600,
            opts=self.child(),
        )
        entry = aws.eks.AccessEntry(
            f"{name}-access",
            cluster_name=args["cluster_name"],
            principal_arn=role.arn,
            kubernetes_groups=[args["group"]],
            type="STANDARD",
            opts=self.child(),
        )
        reachable = aws.vpc.SecurityGroupIngressRule(
            f"{name}-api",
            security_group_id=args["security_group_id"],
            cidr_ipv4=args["manager_cidr"],
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            description=f"Kubernetes API for the manager {manager}",
            opts=self.child(),
        )
        self.role_arn = after(role.arn, [entry, reachable])
        self.register_declared()
