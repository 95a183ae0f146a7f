"""The commands on a stack: `up`, `preview`, `refresh`, `destroy`, `status` and `explain`."""

from pathlib import Path
from typing import Annotated

import typer

from rehearsal.cluster_kind import ClusterKind, ProviderKind

Stack = Annotated[
    str, typer.Option("--stack", "-s", help="The stack: a file stacks/config/Pulumi.<stack>.yaml.")
]
Rehearse = Annotated[
    bool, typer.Option("--rehearse", help="Use the emulated clouds on this machine instead of the real ones.")
]
Cluster = Annotated[
    ClusterKind | None,
    typer.Option(
        "--cluster",
        help="With --rehearse: the quick emulation of Kubernetes, or a real control plane. Remembered.",
    ),
]
Provider = Annotated[
    ProviderKind | None,
    typer.Option(
        "--provider",
        help="With --cluster real: our Kubernetes provider, or the installed pulumi-resource-kubernetes.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before changing anything.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="List the kinds of resources that the forecast leaves out.")
]
Fault = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        help="With --rehearse: a fault for this run, smoke:slow-rank=1, aws:eks/nodeGroup:capacity@2 or "
        "gcp:container/nodePool:capacity.",
        metavar="FAULT",
    ),
]
Scenario = Annotated[
    Path | None,
    typer.Option("--faults", help="With --rehearse: a YAML file of faults, capacity and quotas."),
]
PolicyPack = Annotated[
    list[Path] | None,
    typer.Option("--policy-pack", help="A policy pack that has to agree, as in Pulumi. Ours is `policies`."),
]
PolicyPackConfig = Annotated[
    list[Path] | None,
    typer.Option("--policy-pack-config", help="Pulumi's configuration (JSON) of the pack in the same place."),
]


def up(
    stack: Stack,
    *,
    rehearse: Rehearse = False,
    yes: Yes = False,
    fault: Fault = None,
    faults: Scenario = None,
    cluster: Cluster = None,
    provider: Provider = None,
    verbose: Verbose = False,
    policy_pack: PolicyPack = None,
    policy_pack_config: PolicyPackConfig = None,
) -> None:
    """Create and change what the stack file asks for, then validate it by a real training run.

    Exit codes: 0 done, 1 it failed, 2 usage or a refused input, 3 a policy forbids it, 130 interrupted.
    """
    from infra.engine.packs import Packs  # noqa: PLC0415
    from trainstack.cli.session import Kinds, open_session  # noqa: PLC0415

    packs = Packs.read(policy_pack or (), policy_pack_config or ())
    kinds = Kinds(cluster, provider)
    session = open_session(
        stack, rehearse=rehearse, faults=fault or (), scenario=faults, kinds=kinds, packs=packs
    )
    session.up(confirmed=yes, verbose=verbose)


def preview(
    stack: Stack,
    *,
    rehearse: Rehearse = False,
    faults: Scenario = None,
    cluster: Cluster = None,
    provider: Provider = None,
    policy_pack: PolicyPack = None,
    policy_pack_config: PolicyPackConfig = None,
) -> None:
    """Say what `up` would do, and what the stack would cost.

    Exit codes: 0 done, 1 it failed, 2 usage or a refused input, 3 a policy forbids it, 130 interrupted.
    """
    from infra.engine.packs import Packs  # noqa: PLC0415
    from trainstack.cli.session import Kinds, open_session  # noqa: PLC0415

    packs = Packs.read(policy_pack or (), policy_pack_config or ())
    kinds = Kinds(cluster, provider)
    open_session(stack, rehearse=rehearse, scenario=faults, kinds=kinds, packs=packs).preview()


def refresh(
    stack: Stack,
    rehearse: Rehearse = False,
    yes: Yes = False,
    cluster: Cluster = None,
    provider: Provider = None,
) -> None:
    """Take over into the state what changed outside of it."""
    from trainstack.cli.session import Kinds, open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse, kinds=Kinds(cluster, provider)).refresh(confirmed=yes)


def destroy(
    stack: Stack,
    rehearse: Rehearse = False,
    yes: Yes = False,
    cluster: Cluster = None,
    provider: Provider = None,
) -> None:
    """Delete everything the stack created."""
    from trainstack.cli.session import Kinds, open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse, kinds=Kinds(cluster, provider)).destroy(confirmed=yes)


def status(stack: Stack, rehearse: Rehearse = False) -> None:
    """Show the stack and its gate; in a rehearsal also what exists in the emulated clouds and what runs."""
    from infra.gate import gates, lines  # noqa: PLC0415
    from infra.outputs import cluster as outputs  # noqa: PLC0415
    from infra.outputs import jobs as job_outputs  # noqa: PLC0415
    from trainstack.cli import job_summary  # noqa: PLC0415
    from trainstack.cli.results import by_nodes  # noqa: PLC0415
    from trainstack.cli.session import open_session  # noqa: PLC0415

    session = open_session(stack, rehearse=rehearse)
    found = {key: output.value for key, output in session.engine.outputs().items()}
    resources = [one for one in session.engine.resources() if one.get("custom")]
    of_jobs = job_outputs.is_of_jobs(found)
    exported = outputs.parse(found) if outputs.KEY in found and not of_jobs else None
    if of_jobs:
        for line in job_summary.status(job_outputs.parse(found)):
            typer.echo(line)
    elif exported:
        typer.echo(
            f"stack      {exported.stack} ({exported.cloud}, {exported.region}, profile {exported.profile})"
        )
        typer.echo(f"cluster    {exported.cluster_name}, pools {', '.join(exported.pools)}")
        typer.echo(f"teams      {', '.join(f'{team.name} ({team.namespace})' for team in exported.teams)}")
        typer.echo(f"mlflow     {exported.mlflow_url}")
        if exported.mlflow_way_in is not None:
            typer.echo(f"browsers   {exported.mlflow_way_in}")
        for run in exported.smoke:
            typer.echo(f"results    {run.result_uri}")
            typer.echo(f"repeated   {run.schedule or 'never'}")
    elif resources:
        typer.echo(f"stack      {stack}: no `up` has finished; {len(resources)} resources exist")
    else:
        typer.echo(f"stack      {stack}: nothing is deployed")
    validations = gates(resources)
    for line in lines(validations, session.loaded.spec.validated if resources and not of_jobs else ()):
        typer.echo(line)
    for told in by_nodes(validations, exported, session.rehearsal) if exported else ():
        typer.echo(f"nodes      {told}")
    if session.rehearsal is None:
        return
    live = session.rehearsal.status()
    counts = ", ".join(f"{count} {package}" for package, count in sorted(live["resources"].items()))
    typer.echo(f"emulated   {counts or 'no resources'}; {live['engines']} engines attached")
    for workload in live["workloads"]:
        state = "ready" if workload["ready"] else f"{workload['phase']} {workload['reason']}".strip()
        where = f" at {workload['urls'][0]}" if workload["urls"] else ""
        typer.echo(f"running    {workload['kind']} {workload['namespace']}/{workload['pod']}: {state}{where}")
        typer.echo(f"           log {workload['log']}")


Key = Annotated[str, typer.Argument(help="A key such as layout.pools[0].machine; without one, all keys.")]


def explain(key: Key = "", stack: Stack = "dev-aws") -> None:
    """Show a value of the spec with its origin, its reason and its meaning."""
    from infra import stackspec  # noqa: PLC0415

    for found in stackspec.load_file(stack).explain(key):
        typer.echo(f"{found.path} = {found.value!r}")
        typer.echo(f"    from    {found.origin}")
        if found.origin.reason:
            typer.echo(f"    reason  {found.origin.reason}")
        if found.description:
            typer.echo(f"    meaning {found.description}")
