"""The ledger of GPU-hours of a cluster: its program, and what that program may do."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import core, meta, networking, rbac

from components.base import Component
from components.kubernetes.accounting.check import CHECK
from components.kubernetes.accounting.shelf import NAME
from components.kubernetes.fence import METRICS_LABEL, closed, restricted
from components.kubernetes.people import RBAC
from components.kubernetes.programs.program import Program
from components.kubernetes.programs.standing import PORT, Standing, standing

NAMESPACE = "trainstack-accounting"
_KUEUE = "kueue.x-k8s.io"
_HERE = "components.kubernetes.accounting"
_PARTS = ("attempts", "budget", "check", "decisions", "ledger", "metrics", "price", "shelf")
PROGRAM = Program(
    f"{_HERE}.collector",
    imports=[
        *(f"{_HERE}.{part}" for part in _PARTS),
        "components.kubernetes.programs.health",
        "infra.quantity",
    ],
)
# 30 MiB with 150 jobs (benchmarks/queues/gpu_ledger.py); Workloads of teams that a budget stops are kept whole,
# some 6 KiB each, until they are finished.
_MEMORY_MIB = 256


class ExemptionArgs(TypedDict):
    """Jobs that start whatever the budget says."""

    kind: str
    """`priority`: all of a priority class; `job`: one of that name."""
    name: str
    reason: str
    """Why, for the audit trail."""
    approved_by: str
    """Who decided it."""
    last_day: str
    """The last day (UTC) on which it holds, such as 2026-12-31, or never."""


class BudgetArgs(TypedDict):
    """What a team may use in a calendar month (UTC)."""

    usd: NotRequired[float]
    """US dollars of held device-hours; default: no such limit."""
    gpu_hours: NotRequired[float]
    """Held device-hours; default: no such limit."""
    stop: bool
    """Whether jobs that do not fit wait. The team's queues have to ask: `TeamArgs.budgeted`."""
    exempt: Sequence[ExemptionArgs]


class LedgerTeamArgs(TypedDict):
    """A team whose book is kept."""

    name: str
    """Name of the team."""
    namespace: str
    """Its namespace, in which its book lies; it is there before the ledger."""
    budget: NotRequired[BudgetArgs]
    """Default: its hours are counted and held against nothing."""


class GpuLedgerArgs(TypedDict):
    """Arguments of `GpuLedger`."""

    teams: Sequence[LedgerTeamArgs]
    """Whose hours are counted."""
    prices: Mapping[str, Mapping[str, float]]
    """US dollars of a device-hour by flavor and resource; flavors that no source prices are left out."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""


class GpuLedger(Component):
    """One pod that counts the GPU-hours of teams from Workloads, and answers whether jobs fit budgets.

    Each team's book is the ConfigMap `gpu-ledger` of its namespace, which members read and cannot change. The
    pod reads Workloads of all namespaces, writes books and Events in those of teams, and of Workloads
    nothing but their status: what it says there is one admission check.

    While it does not run, no hour is lost that a Workload tells of afterwards, and jobs of teams whose
    budget stops them wait with their quota reserved. `docs/ledger.md` says what an administrator does.
    """

    namespace: pulumi.Output[str]
    """Where it runs; its pod tells its measures at the port `metrics`."""

    def __init__(self, name: str, args: GpuLedgerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        needs = self._home(name)
        needs += self._rights(name, args["teams"], needs[:1])
        runs = Standing(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={"config": _config(args)},
            memory_mib=_MEMORY_MIB,
        )
        made = standing(name, runs, needs, self.child)
        self.namespace = made.metadata.apply(lambda metadata: str(metadata.namespace))
        self.register_outputs({"namespace": self.namespace})

    def _home(self, name: str) -> list[pulumi.Resource]:
        """The namespace, which only readers of measures reach, and the account."""
        space = core.v1.Namespace(
            f"{name}-namespace",
            metadata=meta.v1.ObjectMetaArgs(name=NAMESPACE, labels=restricted()),
            opts=self.child(),
        )
        inside = self.child(pulumi.ResourceOptions(depends_on=[space]))
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=NAMESPACE),
            automount_service_account_token=False,
            opts=inside,
        )
        readers = networking.v1.NetworkPolicy(
            f"{name}-readers",
            metadata={"name": "metrics", "namespace": NAMESPACE},
            spec={
                "pod_selector": {},
                "policy_types": ["Ingress"],
                "ingress": [
                    {
                        "from_": [{"namespace_selector": {"match_labels": {METRICS_LABEL: "allowed"}}}],
                        "ports": [{"port": PORT, "protocol": "TCP"}],
                    }
                ],
            },
            opts=inside,
        )
        return [account, closed(f"{name}-policy", NAMESPACE, "closed", inside), readers]

    def _rights(
        self, name: str, teams: Sequence[LedgerTeamArgs], account: Sequence[pulumi.Resource]
    ) -> list[pulumi.Resource]:
        """Workloads everywhere; books and Events in the namespaces of teams."""
        opts = self.child(pulumi.ResourceOptions(depends_on=account))
        subject = rbac.v1.SubjectArgs(kind="ServiceAccount", name=NAME, namespace=NAMESPACE)
        made: list[pulumi.Resource] = []
        for what, rules in {"queues": _IN_QUEUES, "books": _IN_BOOKS}.items():
            called = f"{NAME}-{what}"
            made.append(
                rbac.v1.ClusterRole(
                    f"{name}-{what}",
                    metadata=meta.v1.ObjectMetaArgs(name=called),
                    rules=[rbac.v1.PolicyRuleArgs(**rule) for rule in rules],
                    opts=opts,
                )
            )
        made.append(
            rbac.v1.ClusterRoleBinding(
                f"{name}-queues",
                metadata=meta.v1.ObjectMetaArgs(name=f"{NAME}-queues"),
                role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=f"{NAME}-queues"),
                subjects=[subject],
                opts=opts,
            )
        )
        made += [
            rbac.v1.RoleBinding(
                f"{name}-books-{team['namespace']}",
                metadata=meta.v1.ObjectMetaArgs(name=f"{NAME}-books", namespace=team["namespace"]),
                role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=f"{NAME}-books"),
                subjects=[subject],
                opts=opts,
            )
            for team in teams
        ]
        return made


_IN_QUEUES: list[dict[str, Any]] = [
    {"api_groups": [_KUEUE], "resources": ["workloads"], "verbs": ["list", "watch", "patch"]},
    {"api_groups": [_KUEUE], "resources": ["workloads/status"], "verbs": ["patch"]},
    {
        "api_groups": [_KUEUE],
        "resources": ["admissionchecks/status"],
        "resource_names": [CHECK],
        "verbs": ["patch"],
    },
]
# Names cannot be fixed: a month's archive is called after the month.
_IN_BOOKS: list[dict[str, Any]] = [
    {"api_groups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update"]},
    {"api_groups": [""], "resources": ["events"], "verbs": ["create"]},
]


def _config(args: GpuLedgerArgs) -> str:
    """What the program is told, as JSON: names of teams and budgets by namespace, and prices."""
    budgets = {
        team["namespace"]: {"usd": None, "gpu_hours": None, **team["budget"]}
        for team in args["teams"]
        if "budget" in team
    }
    names = {team["namespace"]: team["name"] for team in args["teams"]}
    return json.dumps({"teams": names, "budgets": budgets, "prices": args["prices"]}, sort_keys=True)
