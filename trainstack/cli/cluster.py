"""`trainstack cluster`: a real Kubernetes control plane on this machine, for people to look at."""

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from infra.engine.golang import ROOT, SetupError
from infra.errors import Problem, UserError

HOME = ROOT / ".trainstack" / "control-plane" / "run"
POOL_LABEL = "trainstack.dev/pool"
MOST_NODES = 1000

Nodes = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes", help="TYPE=COUNT: nodes of a machine type with GPUs, p4d.24xlarge=2 or a3-megagpu-8g=2."
    ),
]
Home = Annotated[Path, typer.Option("--home", help="Where its files lie; what is there is removed first.")]


def cluster(nodes: Nodes = None, home: Home = HOME) -> None:
    """Run a real control plane until Ctrl-C: API server, controllers, scheduler, Kueue and JobSet.

    Its nodes have no machines: pods that are bound to them only seem to run.
    """
    from components.kubernetes.queueing import kueue_values  # noqa: PLC0415 - help comes without them
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
    values = kueue_values.values(claimed={})
    try:
        with running(ControlPlaneOptions(home, addons={"jobset": {}, "kueue": values}), typer.echo) as plane:
            with plane.api() as api:
                add_nodes(api, pools)
            typer.echo(f"ready; its log files are in {home}\n\n  export KUBECONFIG={plane.kubeconfig}\n")
            typer.echo("Ctrl-C ends it and removes every process.")
            while not over.wait(1.0):
                if plane.process.poll() is not None:
                    raise StartError(f"the control plane ended by itself; see the logs in {home}")
    except StartError as error:
        raise SetupError(str(error)) from error


def _counts(nodes: list[str]) -> dict[str, int]:
    """How many nodes of each machine type. Raises UserError, with every entry that is wrong."""
    from infra.catalog.aws import facts as aws  # noqa: PLC0415 - help comes without them
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
            problems.append(Problem("--nodes", text, rule, fix))
    if problems:
        raise UserError(problems)
    return found


def _zone(kind: str) -> str:
    """A zone of the cloud that has the machine type: EC2 writes a dot in its names, Compute Engine none."""
    return "us-east-1a" if "." in kind else "us-central1-a"
