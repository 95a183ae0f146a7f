"""Access of the manager to a worker: exactly what MultiKueue does there, for an account or for its login."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import meta, rbac

from agents.clusters import leases
from components.base import Component, Options
from components.kubernetes.people import RBAC, SubjectArgs, subjects
from components.kubernetes.programs.namespace import AccessRule, ProgramNamespace, granted, settled

NAMESPACE, ACCOUNT = leases.NAMESPACE, "manager"
_TOKENS = "manager-tokens"
_JOBS = (("batch", "jobs"), ("jobset.x-k8s.io", "jobsets"), ("trainer.kubeflow.org", "trainjobs"))
_KUEUE = "kueue.x-k8s.io"
# Kueue watches each kind of job, and Workloads, in all namespaces of a worker by the label of their origin,
# and lists Workloads to delete those that it does not know (v0.19.2 pkg/controller/admissionchecks/
# multikueue/multikueuecluster.go, `establishWatch` and `runGC`). It reads no pod, Secret or node.
WATCHES = (
    AccessRule(_KUEUE, ("workloads",), ("list", "watch")),
    *(AccessRule(group, (kind,), ("list", "watch")) for group, kind in _JOBS),
)
# It writes only in the namespaces of teams. Kueue's own script grants all of this everywhere
# (site/static/examples/multikueue/create-multikueue-kubeconfig.sh).
WRITES = (
    AccessRule(_KUEUE, ("workloads",), ("get", "create", "update", "patch", "delete")),
    AccessRule(_KUEUE, ("workloads/status",), ("get", "update", "patch")),
    *(AccessRule(group, (kind,), ("get", "create", "update", "patch", "delete")) for group, kind in _JOBS),
    *(AccessRule(group, (f"{kind}/status",), ("get",)) for group, kind in _JOBS),
)


class ManagerAccessArgs(TypedDict):
    """Arguments of `ManagerAccess`."""

    namespaces: Sequence[str]
    """Namespaces of teams, in which the manager runs jobs."""
    login: pulumi.Input[Sequence[SubjectArgs]]
    """The manager's program, by every name by which the API server knows the identity that its cloud gives to
    its pod. It may request tokens of the account, and nothing else."""
    direct: NotRequired[bool]
    """True where the login has the permissions itself, and no tokens of the account: for API servers that
    accept none of their own accounts from outside. Default: no."""


class ManagerAccess(Component):
    """The account of the manager on a worker. Its tokens are short-lived; no Secret contains one."""

    account: pulumi.Output[str]
    """Name of the account, in the namespace `trainstack-clusters`."""

    def __init__(self, name: str, args: ManagerAccessArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        home = ProgramNamespace(NAMESPACE, ACCOUNT)
        needs = settled(name, home, self.child)
        login = pulumi.Output.from_input(args["login"]).apply(subjects)
        direct = login if args.get("direct") else None
        granted(
            f"{name}-watches", home, WATCHES, needs, self.child,
            called="trainstack-manager-watches", to=direct,
        )  # fmt: skip
        granted(
            f"{name}-jobs", home, WRITES, needs, self.child,
            called="trainstack-manager-jobs", namespaces=args["namespaces"], to=direct,
        )  # fmt: skip
        granted(
            f"{name}-lease", home,
            (
                AccessRule("coordination.k8s.io", ["leases"], ["patch"], [leases.LEASE]),
                # A request to create has no name yet that a role could compare.
                AccessRule("coordination.k8s.io", ["leases"], ["create"]),
            ),
            needs, self.child, called="trainstack-manager-lease", namespaces=[NAMESPACE], to=direct,
        )  # fmt: skip
        if direct is None:
            self._tokens(name, login, needs)
        self.account = pulumi.Output.from_input(ACCOUNT)
        self.register_declared()

    def _tokens(
        self,
        name: str,
        login: "pulumi.Output[list[rbac.v1.SubjectArgs]]",
        needs: Sequence[pulumi.Resource],
    ) -> None:
        renews = rbac.v1.Role(
            f"{name}-tokens",
            metadata=meta.v1.ObjectMetaArgs(name=_TOKENS, namespace=NAMESPACE),
            rules=[
                rbac.v1.PolicyRuleArgs(
                    api_groups=[""], resources=["serviceaccounts/token"], resource_names=[ACCOUNT],
                    verbs=["create"],
                )
            ],
            opts=self.child(pulumi.ResourceOptions(depends_on=needs)),
        )  # fmt: skip
        rbac.v1.RoleBinding(
            f"{name}-tokens",
            metadata=meta.v1.ObjectMetaArgs(name=_TOKENS, namespace=NAMESPACE),
            role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name=_TOKENS),
            subjects=login,
            opts=self.child(pulumi.ResourceOptions(depends_on=[renews])),
        )
