"""Roles with their bindings, and the subjects of bindings."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes import meta, rbac

from components.base import Child, Options
from components.kubernetes.people import RBAC

Text = pulumi.Input[str]


def may(group: str, resource: str, *verbs: str, names: Sequence[str] | None = None) -> rbac.v1.PolicyRuleArgs:
    """A rule on a resource of an API group; only on the objects in `names`, if given."""
    return rbac.v1.PolicyRuleArgs(
        api_groups=[group], resources=[resource], verbs=[*verbs], resource_names=names and [*names]
    )


def account(name: str, namespace: Text) -> list[rbac.v1.SubjectArgs]:
    """A service account as the subject of a binding."""
    return [rbac.v1.SubjectArgs(kind="ServiceAccount", name=name, namespace=namespace)]


def bound_role(
    name: str,
    role: str,
    rules: Sequence[rbac.v1.PolicyRuleArgs],
    subjects: Sequence[rbac.v1.SubjectArgs],
    child: Child,
    *,
    namespace: Text | None = None,
    opts: Options = None,
    needs: Sequence[pulumi.Resource] = (),
) -> pulumi.Resource:
    """The binding of a role to its subjects; of the whole cluster without a namespace.

    `opts` are those of the role; the binding comes after it and after `needs`.
    """
    metadata = meta.v1.ObjectMetaArgs(name=role, namespace=namespace)
    kind, of_role, of_binding = (
        ("ClusterRole", rbac.v1.ClusterRole, rbac.v1.ClusterRoleBinding)
        if namespace is None
        else ("Role", rbac.v1.Role, rbac.v1.RoleBinding)
    )
    made = of_role(f"{name}-role", metadata=metadata, rules=[*rules], opts=opts or child())
    return of_binding(
        f"{name}-binding",
        metadata=metadata,
        role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind=kind, name=role),
        subjects=[*subjects],
        opts=child(pulumi.ResourceOptions(depends_on=[made, *needs])),
    )
