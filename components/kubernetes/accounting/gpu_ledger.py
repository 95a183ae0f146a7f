"""The ledger of GPU-hours of a cluster: its program and its permissions."""

import json
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from agents.gpu_ledger.book_store import NAME
from agents.gpu_ledger.check import CHECK
from components.base import Component, Options
from components.kubernetes.monitoring.names import PROMETHEUS_PORT, QUERIES_LABEL
from components.kubernetes.programs.deployment import ProgramDeployment, program_deployment
from components.kubernetes.programs.namespace import AccessRule, ProgramNamespace, granted, settled
from components.kubernetes.programs.program import Program

NAMESPACE = "trainstack-accounting"
_KUEUE = "kueue.x-k8s.io"
_HERE = "agents.gpu_ledger"
_PARTS = (
    "archive",
    "attempts",
    "book_store",
    "book_text",
    "books",
    "budget",
    "check",
    "decisions",
    "entries",
    "ledger",
    "metrics",
    "price",
    "row",
    "sharing",
    "units",
    "usage",
)
_QUEUED = ("reasons", "reports", "retries", "submitted", "turns")
_SHARED = ("dcgm", "events", "exposition", "health", "jobs", "kueue", "prometheus", "times")
PROGRAM = Program(
    f"{_HERE}.collector",
    imports=[
        *(f"{_HERE}.{part}" for part in _PARTS),
        *(f"agents.queued_jobs.{part}" for part in _QUEUED),
        *(f"agents.shared.{part}" for part in _SHARED),
        "infra.quantity",
    ],
)
# 35 MiB with 300 jobs (benchmarks/queues/gpu_ledger.py), 75 MiB with 10,000 finished jobs
# (docs/explanation/ledger.md). Workloads of teams with an enforced budget are kept whole until they are
# finished: 5 KiB of text, six times as much in memory.
_MEMORY_MIB = 256


class ExemptionArgs(TypedDict):
    """Jobs that start regardless of the budget."""

    kind: str
    """`priority`: all of a priority class; `job`: one of that name."""
    name: str
    """Name of the priority class or job."""
    reason: str
    """Reason, for the audit trail."""
    approved_by: str
    """Name of the approver."""
    last_day: str
    """The last day (UTC) of its validity, such as 2026-12-31, or never."""


class BudgetArgs(TypedDict):
    """Limits of a team in a calendar month (UTC)."""

    usd: NotRequired[float]
    """US dollars of held device-hours; default: no such limit."""
    gpu_hours: NotRequired[float]
    """Held GPU-hours; a share of a GPU counts as its part. Default: no such limit."""
    stop: bool
    """Whether jobs that do not fit wait. The team's queues need the check: `TeamArgs.budgeted`."""
    exempt: Sequence[ExemptionArgs]
    """Jobs that start regardless of the budget."""


class LedgerTeamArgs(TypedDict):
    """A team with a book."""

    name: str
    """Name of the team."""
    namespace: str
    """Its namespace, which holds its book; it exists before the ledger."""
    budget: NotRequired[BudgetArgs]
    """Default: its hours are counted without a limit."""


class GpuLedgerArgs(TypedDict):
    """Arguments of `GpuLedger`."""

    teams: Sequence[LedgerTeamArgs]
    """Teams whose hours are counted."""
    prices: Mapping[str, Mapping[str, float]]
    """US dollars of an hour of a whole device by flavor and resource; flavors without a price are left
    out."""
    shares: NotRequired[Mapping[str, int]]
    """Shares of each GPU by flavor, where pods take turns or have partitions: each counts as that part of a
    GPU. Default: GPUs are whole."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    prometheus: NotRequired[str]
    """URL of Prometheus, for GPU activity; default: none, used hours are unknown."""


class GpuLedger(Component):
    """One pod that counts the GPU-hours of teams from Workloads, and decides whether jobs fit budgets.

    Each team's book is the ConfigMap `gpu-ledger` of its namespace, which members read and cannot change. The
    pod reads Workloads and jobs of all namespaces, and writes books and Events in those of teams. Of
    Workloads it writes the state of one admission check, whether they are active, and with a retry the
    condition Requeued and the stack's own label and annotation (`agents.queued_jobs.retries`). RBAC cannot
    name fields: its account can change all of a Workload.

    While it is down, no hour is lost that a Workload shows afterwards, and jobs of teams with an enforced
    budget wait with their quota reserved (docs/explanation/ledger.md).
    """

    namespace: pulumi.Output[str]
    """Its namespace; its pod serves its metrics at the port `metrics`."""

    def __init__(self, name: str, args: GpuLedgerArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        home = ProgramNamespace(NAMESPACE, NAME)
        if "prometheus" in args:
            home = ProgramNamespace(
                NAMESPACE, NAME, asks=(PROMETHEUS_PORT,), labels={QUERIES_LABEL: "allowed"}
            )
        needs = settled(name, home, self.child)
        # To find the job of a pod whose GPU has figures.
        rules = [*_IN_BOOKS, *([AccessRule("", ["pods"], ["list"])] if "prometheus" in args else [])]
        books = [team["namespace"] for team in args["teams"]]
        needs = [
            *needs,
            *granted(f"{name}-queues", home, _IN_QUEUES, needs, self.child, called=f"{NAME}-queues"),
            *granted(
                f"{name}-books", home, rules, needs, self.child, called=f"{NAME}-books", namespaces=books
            ),
        ]
        runs = ProgramDeployment(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={"config": _config(args)},
            memory_mib=_MEMORY_MIB,
        )
        made = program_deployment(name, runs, needs, self.child)
        self.namespace = made.metadata.apply(lambda metadata: str(metadata.namespace))
        self.register_declared()


_IN_QUEUES = (
    AccessRule(_KUEUE, ["workloads"], ["list", "watch", "patch"]),
    AccessRule(_KUEUE, ["workloads/status"], ["patch"]),
    AccessRule(_KUEUE, ["admissionchecks/status"], ["patch"], names=[CHECK]),
    # Jobs without a Workload, and labels with which members start stopped jobs again.
    AccessRule("batch", ["jobs"], ["list", "watch"]),
    AccessRule("jobset.x-k8s.io", ["jobsets"], ["list", "watch"]),
    AccessRule("trainer.kubeflow.org", ["trainjobs"], ["list", "watch"]),
    AccessRule(_KUEUE, ["workloadpriorityclasses"], ["list"]),
)
# Names cannot be fixed: a month's archive has the month in its name.
_IN_BOOKS = (
    AccessRule("", ["configmaps"], ["get", "create", "update"]),
    # A repeated Event is patched.
    AccessRule("", ["events"], ["create", "patch"]),
)


def _config(args: GpuLedgerArgs) -> str:
    budgets = {
        team["namespace"]: {"usd": None, "gpu_hours": None, **team["budget"]}
        for team in args["teams"]
        if "budget" in team
    }
    names = {team["namespace"]: team["name"] for team in args["teams"]}
    config = {
        "teams": names,
        "budgets": budgets,
        "prices": args["prices"],
        "parts": args.get("shares", {}),
        "prometheus": args.get("prometheus"),
    }
    return json.dumps(config, sort_keys=True)
