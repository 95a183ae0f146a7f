"""The ledger of GPU-hours of a cluster: its program, and what that program may do."""

import json
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from agents.gpu_ledger.book_store import NAME
from agents.gpu_ledger.check import CHECK
from components.base import Component
from components.kubernetes.monitoring.places import PROMETHEUS_PORT, QUERIES_LABEL
from components.kubernetes.programs.home import Home, Rule, granted, settled
from components.kubernetes.programs.program import Program
from components.kubernetes.programs.standing import Standing, standing

NAMESPACE = "trainstack-accounting"
_KUEUE = "kueue.x-k8s.io"
_HERE = "agents.gpu_ledger"
_PARTS = (
    "archive",
    "attempts",
    "budget",
    "check",
    "decisions",
    "ledger",
    "metrics",
    "price",
    "row",
    "shelf",
    "usage",
)
_SHARED = ("dcgm", "events", "exposition", "health", "prometheus", "times")
PROGRAM = Program(
    f"{_HERE}.collector",
    imports=[
        *(f"{_HERE}.{part}" for part in _PARTS),
        *(f"agents.shared.{part}" for part in _SHARED),
        "infra.quantity",
    ],
)
# 35 MiB with 300 jobs (benchmarks/queues/gpu_ledger.py), 75 MiB with 10,000 finished jobs
# (docs/explanation/ledger.md).
# Workloads of teams that a budget stops are kept whole until they are finished: 5 KiB of text, six times as
# much in memory.
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
    prometheus: NotRequired[str]
    """Where it asks what GPUs did; default: nobody, and used hours are unknown."""


class GpuLedger(Component):
    """One pod that counts the GPU-hours of teams from Workloads, and answers whether jobs fit budgets.

    Each team's book is the ConfigMap `gpu-ledger` of its namespace, which members read and cannot change. The
    pod reads Workloads of all namespaces, writes books and Events in those of teams, and of Workloads
    nothing but their status: what it says there is one admission check.

    While it does not run, no hour is lost that a Workload tells of afterwards, and jobs of teams whose
    budget stops them wait with their quota reserved (docs/explanation/ledger.md).
    """

    namespace: pulumi.Output[str]
    """Where it runs; its pod tells its measures at the port `metrics`."""

    def __init__(self, name: str, args: GpuLedgerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        home = Home(NAMESPACE, NAME)
        if "prometheus" in args:
            home = Home(NAMESPACE, NAME, asks=(PROMETHEUS_PORT,), labels={QUERIES_LABEL: "allowed"})
        needs = settled(name, home, self.child)
        # Which job a pod is of, whose GPU has figures.
        rules = [*_IN_BOOKS, *([Rule("", ["pods"], ["list"])] if "prometheus" in args else [])]
        books = [team["namespace"] for team in args["teams"]]
        needs = [
            *needs,
            *granted(f"{name}-queues", home, _IN_QUEUES, needs, self.child, called=f"{NAME}-queues"),
            *granted(
                f"{name}-books", home, rules, needs, self.child, called=f"{NAME}-books", namespaces=books
            ),
        ]
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


_IN_QUEUES = (
    Rule(_KUEUE, ["workloads"], ["list", "watch", "patch"]),
    Rule(_KUEUE, ["workloads/status"], ["patch"]),
    Rule(_KUEUE, ["admissionchecks/status"], ["patch"], names=[CHECK]),
)
# Names cannot be fixed: a month's archive is called after the month.
_IN_BOOKS = (
    Rule("", ["configmaps"], ["get", "create", "update"]),
    Rule("", ["events"], ["create"]),
)


def _config(args: GpuLedgerArgs) -> str:
    """What the program is told, as JSON: names of teams and budgets by namespace, prices, whom to ask."""
    budgets = {
        team["namespace"]: {"usd": None, "gpu_hours": None, **team["budget"]}
        for team in args["teams"]
        if "budget" in team
    }
    names = {team["namespace"]: team["name"] for team in args["teams"]}
    said = {
        "teams": names,
        "budgets": budgets,
        "prices": args["prices"],
        "prometheus": args.get("prometheus"),
    }
    return json.dumps(said, sort_keys=True)
