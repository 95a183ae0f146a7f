"""`trainstack cluster`: a real Kubernetes control plane on this machine, for inspection."""

import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from infra.engine.golang import SetupError
from infra.errors import Problem, UserError
from infra.places import USER

HOME = USER / "control-plane" / "run"
POOL_LABEL = "trainstack.dev/pool"
MOST_NODES = 1000

Nodes = Annotated[
    list[str] | None,
    typer.Option("--nodes", help="TYPE=COUNT: simulated nodes of a GPU machine type (p4d.24xlarge=2)."),
]
Home = Annotated[Path, typer.Option("--home", help="Folder of its files; existing content is deleted first.")]


Count = Annotated[
    int,
    typer.Option(
        "--clusters",
        min=1,
        max=5,
        help="Number of control planes, each in a folder of its own, not connected.",
    ),
]


def cluster(nodes: Nodes = None, home: Home = HOME, clusters: Count = 1) -> None:
    """Run a real control plane until Ctrl-C: API server, controllers, scheduler, Kueue and JobSet.

    Nodes are simulated: pods on them do not run.
    """
    from components.kubernetes.queueing import kueue_values  # noqa: PLC0415 - help needs none of them
    from rehearsal.controlplane.control_plane import ControlPlaneOptions, running  # noqa: PLC0415
    from rehearsal.controlplane.nodes import KwokPool, add_nodes  # noqa: PLC0415
    from rehearsal.controlplane.processes import StartError  # noqa: PLC0415

    counts = _counts(nodes or ["p4d.24xlarge=2"])
    pools = [
        KwokPool(kind.replace(".", "-"), kind, count, labels={POOL_LABEL: kind}, zone=_zone(kind))
        for kind, count in counts.items()
    ]
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    addons = {"jobset": {}, "kueue": kueue_values.values(claimed={})}
    homes = [home] if clusters == 1 else [home / str(number) for number in range(1, clusters + 1)]
    try:
        with ExitStack() as stack:
            planes = []
            for folder in homes:
                plane = stack.enter_context(running(ControlPlaneOptions(folder, addons=addons), typer.echo))
                with plane.api() as api:
                    add_nodes(api, pools)
                typer.echo(f"ready; log files are in {folder}\n\n  export KUBECONFIG={plane.kubeconfig}\n")
                planes.append(plane)
            typer.echo("Press Ctrl-C to stop all processes.")
            while not over.wait(1.0):
                for plane in planes:
                    if plane.process.poll() is not None:
                        raise StartError(f"a control plane ended unexpectedly; see the logs in {plane.home}")
    except StartError as error:
        raise SetupError(str(error), "See its log files, or run `make binaries` again.") from error


def _counts(nodes: list[str]) -> dict[str, int]:
    """The number of nodes per machine type. Raises UserError with every invalid entry."""
    from infra.catalog.aws import facts as aws  # noqa: PLC0415 - help needs none of them
    from infra.catalog.gcp import facts as google  # noqa: PLC0415

    types = {*aws.instance_types, *google.machine_types}
    found: dict[str, int] = {}
    problems = []
    for text in nodes:
        kind, _, count = text.partition("=")
        if kind in types and count.isdigit() and 0 < int(count) <= MOST_NODES:
            found[kind] = found.get(kind, 0) + int(count)
        else:
            fix = "Write TYPE=COUNT with a GPU machine type, such as p4d.24xlarge=2 or a3-megagpu-8g=2."
            rule = f"must be a machine type of the catalog and a count from 1 to {MOST_NODES}"
            problems.append(Problem("--nodes", text, rule, fix, code="nodes-invalid"))
    if problems:
        raise UserError(problems)
    return found


def _zone(kind: str) -> str:
    """A zone of the cloud of a machine type: names of EC2 have a dot, those of Compute Engine none."""
    return "us-east-1a" if "." in kind else "us-central1-a"
