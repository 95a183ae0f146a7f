"""Namespace, service account and roles of a long-running program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_kubernetes import core, meta, rbac

from components.base import Child
from components.kubernetes.network_policies import Ports, controllers
from components.kubernetes.people import RBAC
from components.kubernetes.programs.deployment import PORT


@dataclass(frozen=True)
class AccessRule:
    """Permissions on objects of some kinds."""

    group: str
    """API group; empty for the core's."""
    resources: Sequence[str]
    verbs: Sequence[str]
    names: Sequence[str] = ()
    """Names of the objects; default: all."""


@dataclass(frozen=True)
class ProgramNamespace:
    """A namespace with one account."""

    namespace: str
    account: str
    asks: Sequence[int] = ()
    """Ports of other pods that the program connects to, besides names and HTTPS."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the namespace, with which the policies of others admit its pods."""


def settled(name: str, home: ProgramNamespace, child: Child) -> list[pulumi.Resource]:
    """The namespace, which only readers of metrics reach, and the account, without a token."""
    ports = Ports(api_server=(), metrics=(PORT,), asked=home.asks, labels=home.labels)
    space, policy = controllers(name, home.namespace, ports, None, child)
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=home.account, namespace=home.namespace),
        automount_service_account_token=False,
        opts=child(pulumi.ResourceOptions(depends_on=[space])),
    )
    return [policy, account]


def granted(
    name: str,
    home: ProgramNamespace,
    rules: Sequence[AccessRule],
    needs: Sequence[pulumi.Resource],
    child: Child,
    *,
    called: str,
    namespaces: Sequence[str] | None = None,
    to: "pulumi.Output[list[rbac.v1.SubjectArgs]] | None" = None,
) -> list[pulumi.Resource]:
    """A ClusterRole named `called`, bound to the account in some namespaces; None: everywhere.

    `to`: other subjects, instead of the account.
    """
    role = rbac.v1.ClusterRole(
        f"{name}-role",
        metadata=meta.v1.ObjectMetaArgs(name=called),
        rules=[_rule(rule) for rule in rules],
        opts=child(),
    )
    refers = rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=called)
    account = rbac.v1.SubjectArgs(kind="ServiceAccount", name=home.account, namespace=home.namespace)
    subjects = [account] if to is None else to
    opts = child(pulumi.ResourceOptions(depends_on=[role, *needs]))
    if namespaces is None:
        everywhere = rbac.v1.ClusterRoleBinding(
            f"{name}-binding",
            metadata=meta.v1.ObjectMetaArgs(name=called),
            role_ref=refers,
            subjects=subjects,
            opts=opts,
        )
        return [everywhere]
    return [
        rbac.v1.RoleBinding(
            f"{name}-{namespace}-binding",
            metadata=meta.v1.ObjectMetaArgs(name=called, namespace=namespace),
            role_ref=refers,
            subjects=subjects,
            opts=opts,
        )
        for namespace in namespaces
    ]


def _rule(rule: AccessRule) -> rbac.v1.PolicyRuleArgs:
    return rbac.v1.PolicyRuleArgs(
        api_groups=[rule.group],
        resources=list(rule.resources),
        verbs=list(rule.verbs),
        resource_names=list(rule.names) or None,
    )
