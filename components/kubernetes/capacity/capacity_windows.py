"""The controller of pools with windows: its program, its namespace and its permissions."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.capacity.args import WindowArgs, settings
from components.kubernetes.programs.deployment import ProgramDeployment, program_deployment
from components.kubernetes.programs.namespace import AccessRule, ProgramNamespace, granted, settled
from components.kubernetes.programs.program import Program
from components.ordering import after

NAMESPACE = "trainstack-capacity"
NAME = "capacity-keeper"
PROGRAM = Program(
    "agents.capacity_windows.controller",
    imports=[
        "agents.capacity_windows.measures",
        "agents.capacity_windows.verdicts",
        "agents.capacity_windows.windows",
        "agents.capacity_windows.workloads",
        "agents.shared.events",
        "agents.shared.exposition",
        "agents.shared.health",
        "agents.shared.jobs",
        "agents.shared.kueue",
        "agents.shared.times",
    ],
)
_KUEUE = "kueue.x-k8s.io"
# Workloads and their activation; checks; and the run time declared by the object behind a run.
RULES = (
    AccessRule(_KUEUE, ["workloads"], ["list", "watch", "patch"]),
    AccessRule(_KUEUE, ["workloads/status"], ["patch"]),
    AccessRule(_KUEUE, ["admissionchecks"], ["get"]),
    AccessRule(_KUEUE, ["admissionchecks/status"], ["patch"]),
    AccessRule("batch", ["jobs"], ["get"]),
    AccessRule("jobset.x-k8s.io", ["jobsets"], ["get"]),
    AccessRule("trainer.kubeflow.org", ["trainjobs"], ["get"]),
    AccessRule("", ["pods"], ["get"]),
    AccessRule("", ["events"], ["create"]),
)


class CapacityWindowsArgs(TypedDict):
    """Arguments of `CapacityWindows`."""

    windows: Mapping[str, WindowArgs]
    """Times at which jobs may use each pool, by its name; at least one."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""


class CapacityWindows(Component):
    """A controller of the AdmissionChecks of pools with windows; it comes after their queues.

    It uses the clock of its node. While it is down no job starts on such a pool, and none is stopped.
    """

    program: pulumi.Output[str]
    """Name of its Deployment, once that runs; workloads queued for such a pool come after it."""

    def __init__(self, name: str, args: CapacityWindowsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        home = ProgramNamespace(NAMESPACE, NAME)
        needs = settled(name, home, self.child)
        rights = granted(name, home, RULES, needs, self.child, called=f"trainstack-{NAME}")
        runs = ProgramDeployment(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={"windows": settings(args["windows"])},
        )
        made = program_deployment(f"{name}-keeper", runs, [*needs, *rights], self.child)
        self.program = after(pulumi.Output.from_input(NAME), [made])
        self.register_declared()
