"""`trainstack status`: what exists and what runs."""

import typer

from infra.cli.options import Rehearse, Stack


def status(stack: Stack, rehearse: Rehearse = False) -> None:
    """Show the stack's outputs; in a rehearsal also what exists in the emulated clouds and what runs."""
    from infra import outputs  # noqa: PLC0415
    from infra.cli.session import open_session  # noqa: PLC0415

    session = open_session(stack, rehearse=rehearse)
    found = {key: output.value for key, output in session.engine.outputs().items()}
    if outputs.KEY in found:
        told = outputs.parse(found)
        typer.echo(f"stack      {told.stack} ({told.cloud}, {told.region}, profile {told.profile})")
        typer.echo(f"cluster    {told.cluster_name}, pools {', '.join(told.pools)}")
        typer.echo(f"teams      {', '.join(f'{team.name} ({team.namespace})' for team in told.teams)}")
        typer.echo(f"mlflow     {told.mlflow_url}")
        if told.smoke is not None:
            again = f", again by {told.smoke.schedule}" if told.smoke.schedule else ", not repeated"
            typer.echo(f"validated  {told.smoke.namespace}/{told.smoke.job}{again}")
    else:
        typer.echo(f"stack      {stack}: nothing is deployed")
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
