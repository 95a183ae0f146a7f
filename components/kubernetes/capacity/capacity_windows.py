"""The program that opens and closes pools with windows, its namespace and its rights."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes import core, meta, rbac

from components.base import Component
from components.kubernetes.capacity.args import WindowArgs, settings
from components.kubernetes.fence import Ports, controllers
from components.kubernetes.programs.program import Program
from components.kubernetes.programs.standing import PORT, Standing, standing
from components.ordering import after

NAMESPACE = "trainstack-capacity"
NAME = "capacity-keeper"
PROGRAM = Program(
    "components.kubernetes.capacity.keeper",
    imports=[
        "components.kubernetes.capacity.measures",
        "components.kubernetes.capacity.verdicts",
        "components.kubernetes.capacity.windows",
        "components.kubernetes.capacity.workloads",
        "components.kubernetes.programs.health",
    ],
)
_KUEUE = "kueue.x-k8s.io"
# Who waits and runs, and is called back; answers; and how long the object behind a run says that it takes.
RULES = (
    (_KUEUE, ["workloads"], ["list", "watch", "patch"]),
    (_KUEUE, ["workloads/status"], ["patch"]),
    (_KUEUE, ["admissionchecks"], ["get"]),
    (_KUEUE, ["admissionchecks/status"], ["patch"]),
    ("batch", ["jobs"], ["get"]),
    ("jobset.x-k8s.io", ["jobsets"], ["get"]),
    ("trainer.kubeflow.org", ["trainjobs"], ["get"]),
    ("", ["pods"], ["get"]),
    ("", ["events"], ["create"]),
)


class CapacityWindowsArgs(TypedDict):
    """Arguments of `CapacityWindows`."""

    windows: Mapping[str, WindowArgs]
    """When jobs may use each pool, by its name; at least one."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""


class CapacityWindows(Component):
    """A program that answers for the AdmissionChecks of pools with windows; it comes after their queues.

    It decides by the clock of its node. While it is away no job starts on such a pool, and none is stopped.
    """

    program: pulumi.Output[str]
    """Name of its Deployment, once that runs; what is queued for such a pool comes after it."""

    def __init__(
        self, name: str, args: CapacityWindowsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        ports = Ports(api_server=(), metrics=(PORT,))
        space = controllers(name, NAMESPACE, ports, [], self.child)
        runs = Standing(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={"windows": settings(args["windows"])},
        )
        made = standing(f"{name}-keeper", runs, [*space, *_rights(name, space, self.child)], self.child)
        self.program = after(pulumi.Output.from_input(NAME), [made])
        self.register_outputs({"program": self.program})


def _rights(
    name: str, space: list[pulumi.Resource], child: Callable[..., pulumi.ResourceOptions]
) -> list[pulumi.Resource]:
    """The program's account, and what it may do in every namespace."""
    inside = child(pulumi.ResourceOptions(depends_on=space))
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=NAMESPACE),
        automount_service_account_token=False,
        opts=inside,
    )
    called = f"trainstack-{NAME}"
    role = rbac.v1.ClusterRole(
        f"{name}-role", metadata=meta.v1.ObjectMetaArgs(name=called), rules=rules(), opts=child()
    )
    binding = rbac.v1.ClusterRoleBinding(
        f"{name}-binding",
        metadata=meta.v1.ObjectMetaArgs(name=called),
        role_ref=rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=called),
        subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=NAME, namespace=NAMESPACE)],
        opts=child(pulumi.ResourceOptions(depends_on=[role, account])),
    )
    return [account, binding]


def rules() -> list[Any]:
    """What the program may do, as a role says it."""
    return [
        rbac.v1.PolicyRuleArgs(api_groups=[group], resources=list(resources), verbs=list(verbs))
        for group, resources, verbs in RULES
    ]
