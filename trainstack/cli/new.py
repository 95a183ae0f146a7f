"""`trainstack new`: the folder of a client."""

import datetime
from pathlib import Path
from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the client: the folder and the project.")]
Cloud = Annotated[str, typer.Option("--cloud", help="aws or gcp.")]
Profile = Annotated[str, typer.Option("--profile", help="Size of the team: small, small-cluster or medium.")]
Region = Annotated[str, typer.Option("--region", help="Region; default: that of the shipped example.")]
Owner = Annotated[str, typer.Option("--owner", help="Owner and address of alarms, such as ml@acme.com.")]
Budget = Annotated[
    int, typer.Option("--budget", min=0, help="US dollars per month; default: that of the shipped example.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the files, and write none.")]


def new(
    name: Name,
    *,
    cloud: Cloud = "aws",
    profile: Profile = "medium",
    region: Region = "",
    owner: Owner = "",
    budget: Budget = 0,
    dry_run: DryRun = False,
) -> None:
    """Make a folder with the stack of a client: data only, never over files that exist."""
    from infra import cost  # noqa: PLC0415 - help needs none of them
    from trainstack.stamp import client, environment  # noqa: PLC0415

    files = client.render(client.ClientChoices(name, cloud, profile, region, owner, budget))
    if dry_run:
        for path, text in files.texts.items():
            typer.echo(f"--- {name}/{path}\n{text}")
    else:
        client.write(files.texts, Path(name))
        environment.link(Path(name))
    spec = files.loaded.spec
    price = cost.estimate(spec, datetime.date.today()).line(spec.region)
    done = "Would write" if dry_run else "Wrote"
    typer.echo(f"{done} {len(files.texts)} files into {name}/")
    typer.echo(f"  cost per month, as its stack file is: {price}")
    if not dry_run:
        typer.echo(f"Next\n  cd {name}\n  trainstack up --rehearse --yes")
