"""The program that opens and closes pools with windows, its namespace and its rights."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi

from components.base import Component
from components.kubernetes.capacity.args import WindowArgs, settings
from components.kubernetes.programs.home import Home, Rule, granted, settled
from components.kubernetes.programs.program import Program
from components.kubernetes.programs.standing import Standing, standing
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
        "agents.shared.times",
    ],
)
_KUEUE = "kueue.x-k8s.io"
# Who waits and runs, and is called back; answers; and how long the object behind a run says that it takes.
RULES = (
    Rule(_KUEUE, ["workloads"], ["list", "watch", "patch"]),
    Rule(_KUEUE, ["workloads/status"], ["patch"]),
    Rule(_KUEUE, ["admissionchecks"], ["get"]),
    Rule(_KUEUE, ["admissionchecks/status"], ["patch"]),
    Rule("batch", ["jobs"], ["get"]),
    Rule("jobset.x-k8s.io", ["jobsets"], ["get"]),
    Rule("trainer.kubeflow.org", ["trainjobs"], ["get"]),
    Rule("", ["pods"], ["get"]),
    Rule("", ["events"], ["create"]),
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
        home = Home(NAMESPACE, NAME)
        needs = settled(name, home, self.child)
        rights = granted(name, home, RULES, needs, self.child, called=f"trainstack-{NAME}")
        runs = Standing(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={"windows": settings(args["windows"])},
        )
        made = standing(f"{name}-keeper", runs, [*needs, *rights], self.child)
        self.program = after(pulumi.Output.from_input(NAME), [made])
        self.register_outputs({"program": self.program})
