"""`trainstack collect`: what an account has, written down, to be judged now or later."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError

if TYPE_CHECKING:
    from policies.sources.live.snapshot import Snapshot


class Cloud(StrEnum):
    """Whose accounts can be asked."""

    AWS = "aws"
    GCP = "gcp"


Live = Annotated[Cloud, typer.Option("--live", help="The cloud to ask, with the credentials of this shell.")]
Region = Annotated[
    str | None, typer.Option("--region", help="Which region to ask about; else that of the environment.")
]
Project = Annotated[
    str | None,
    typer.Option("--project", help="Which project of Google Cloud to ask; else that of the environment."),
]
Out = Annotated[Path, typer.Option("--out", help="Where to write the snapshot.", metavar="FILE")]


def collect(live: Live, out: Out, region: Region = None, project: Project = None) -> None:
    """Write down what a region of AWS, or a project of Google Cloud, answers, for `trainstack audit`.

    Only reads: docs/live.md has the rights that allow no more. What is refused is written down as such.
    """
    from policies.sources.live import snapshot  # noqa: PLC0415 - help comes without them
    from policies.sources.live.records import account  # noqa: PLC0415

    found = collected(live, region, project)
    snapshot.write(found, out)
    typer.echo(f"{out}: {len(account(found).resources)} resources of account {found.account}, {found.region}")
    refused = sorted({f"{one}" for heard in found.answers.values() for one in heard.refusals})
    for said in refused:
        typer.echo(f"  {said}")
    if refused:
        typer.echo("Rules that need these are undetermined; docs/live.md has the rights that allow them.")


def collected(cloud: Cloud, region: str | None, project: str | None) -> "Snapshot":
    """What an account or a project answers now. Raises UserError where there is none to ask."""
    name, given, other = (
        ("--project", project, "AWS is asked about a region")
        if cloud is Cloud.AWS
        else ("--region", region, "a project of Google Cloud is asked about all regions")
    )
    if given is not None:
        raise UserError([Problem(name, given, other, f"Leave out {name}.")])
    return _of_aws(region) if cloud is Cloud.AWS else _of_google(project)


def _of_aws(region: str | None) -> "Snapshot":
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to import

    from infra.aws_login import LOG_IN, LoggedOutError, default_region, told  # noqa: PLC0415
    from infra.collect import aws  # noqa: PLC0415

    try:
        place = region or default_region()
        if not place:
            raise UserError([Problem("--region", None, "the environment names none", "Add --region REGION.")])
        return aws.collect(place)
    except LoggedOutError as error:
        raise UserError([Problem("credentials", None, f"AWS cannot be asked: {error}", LOG_IN)]) from None
    except ClientError as error:
        said = f"does not say who asks: {': '.join(told(error))}"
        raise UserError([Problem("credentials", None, said, LOG_IN)]) from None
    except (BotoCoreError, ValueError) as error:
        fix = "Look at the region and the connection to AWS."
        raise UserError([Problem("AWS", region, f"cannot be asked: {error}", fix)]) from None


def _of_google(project: str | None) -> "Snapshot":
    from infra.collect import gcp  # noqa: PLC0415 - slow to import
    from infra.google_login import LOG_IN, LoggedOutError, session  # noqa: PLC0415

    try:
        asked, usual = session(gcp.ATTEMPTS)
        name = project or usual
        if not _PROJECT.fullmatch(name):
            said = "is no id of a project" if name else "the environment names none"
            raise UserError([Problem("--project", name or None, said, "Add --project PROJECT, by its id.")])
        return gcp.collect(name, asked)
    except LoggedOutError as error:
        said = f"Google cannot be asked: {error}".rstrip(".")
        raise UserError([Problem("credentials", None, said, LOG_IN)]) from None
    except gcp.UnansweredError as error:
        refusal = error.args[0]
        said = f"{refusal}: {refusal.message}"
        raise UserError([Problem("--project", name, said, _fix(refusal.code, name))]) from None


# Google, "Creating and managing projects"; older ones have a domain before a colon.
_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")


def _fix(code: str, project: str) -> str:
    """What to do where a project cannot be asked."""
    if code == "SERVICE_DISABLED":
        apis = "cloudresourcemanager.googleapis.com cloudasset.googleapis.com"
        return f"Enable it: gcloud services enable {apis} --project {project}"
    if code in ("PERMISSION_DENIED", "NOT_FOUND"):
        return "Look at its id, and at your rights there (docs/live.md)."
    return "Try again later; look at the connection to Google, and at quotas."
