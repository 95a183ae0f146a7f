"""`trainstack collect`: what an account has, written down, to be judged now or later."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from infra.places import located

if TYPE_CHECKING:
    from policies.sources.live.snapshot import Snapshot


class Cloud(StrEnum):
    """Clouds and clusters that can be asked."""

    AWS = "aws"
    GCP = "gcp"
    KUBERNETES = "kubernetes"


Live = Annotated[Cloud, typer.Option("--live", help="Cloud to collect, with the credentials of this shell.")]
Region = Annotated[str | None, typer.Option("--region", help="Region; default: that of the environment.")]
Project = Annotated[
    str | None, typer.Option("--project", help="Google Cloud project; default: that of the environment.")
]
Context = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig; default: the current one.")
]
Out = Annotated[Path, typer.Option("--out", help="File of the snapshot.", metavar="FILE")]


# The option that a cloud takes, and why it takes no other.
_OPTIONS = {
    Cloud.AWS: ("--region", "an AWS account is collected per region"),
    Cloud.GCP: ("--project", "a Google Cloud project is collected in all regions"),
    Cloud.KUBERNETES: ("--context", "a cluster is collected as a whole"),
}


def collect(
    live: Live, out: Out, region: Region = None, project: Project = None, context: Context = None
) -> None:
    """Write a snapshot of an AWS account, a Google Cloud project or a cluster, for `trainstack audit`.

    Read-only: docs/how-to/live.md lists the required rights. Denied requests are recorded as denied.
    """
    from policies.sources.live import snapshot  # noqa: PLC0415 - help comes without them
    from policies.sources.live.records import account  # noqa: PLC0415

    found = collected(live, region=region, project=project, context=context)
    snapshot.write(found, out)
    whose = "cluster" if live is Cloud.KUBERNETES else "account"
    count = len(account(found).resources)
    typer.echo(f"{out}: {count} resources of {whose} {found.account}, {found.region}")
    refused = sorted({f"{one}" for answer in found.answers.values() for one in answer.refusals})
    for line in refused:
        typer.echo(f"  {line}")
    if refused:
        typer.echo(
            located(
                "Rules that need these are undetermined; docs/how-to/live.md has the rights that allow them."
            )
        )


def collected(
    cloud: Cloud, *, region: str | None = None, project: str | None = None, context: str | None = None
) -> "Snapshot":
    """The snapshot of an account, a project or a cluster now. Raises UserError if it cannot be reached.

    Absent values come from the environment.
    """
    option, rule = _OPTIONS[cloud]
    options = {"--region": region, "--project": project, "--context": context}
    others = {name: value for name, value in options.items() if value is not None and name != option}
    if others:
        code = "option-of-another-cloud"
        unused = [Problem(name, value, rule, f"Omit {name}.", code=code) for name, value in others.items()]
        raise UserError(unused)
    if cloud is Cloud.AWS:
        return _of_aws(region)
    if cloud is Cloud.GCP:
        return _of_google(project)
    from trainstack.collect import kubernetes  # noqa: PLC0415

    return kubernetes.collect(context)


def _of_aws(region: str | None) -> "Snapshot":
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to import

    from infra.clouds.aws.login import LOG_IN, LoggedOutError, code_and_message, default_region  # noqa: PLC0415
    from trainstack.collect.aws import account as aws  # noqa: PLC0415

    try:
        place = region or default_region()
        if not place:
            rule, fix = "the environment has no region", "Add --region REGION."
            raise UserError([Problem("--region", None, rule, fix, code="region-missing")])
        return aws.collect(place)
    except LoggedOutError as error:
        rule = f"not logged in to AWS: {error}"
        raise UserError([Problem("credentials", None, rule, LOG_IN, code="logged-out")]) from None
    except ClientError as error:
        rule = f"AWS rejects the credentials: {': '.join(code_and_message(error))}"
        raise UserError([Problem("credentials", None, rule, LOG_IN, code="credentials-rejected")]) from None
    except (BotoCoreError, ValueError) as error:
        fix = "Check the region and the connection to AWS."
        problem = Problem("AWS", region, f"not reachable: {error}", fix, code="aws-not-reachable")
        raise UserError([problem]) from None


def _of_google(project: str | None) -> "Snapshot":
    from infra.clouds.gcp.login import LOG_IN, LoggedOutError, session  # noqa: PLC0415
    from trainstack.collect.gcp import project as gcp  # noqa: PLC0415 - slow to import

    try:
        asked, usual = session(gcp.ATTEMPTS)
        name = project or usual
        if not _PROJECT.fullmatch(name):
            rule = "not a project id" if name else "the environment has no project"
            fix = "Add --project PROJECT with its id."
            raise UserError([Problem("--project", name or None, rule, fix, code="invalid-project")])
        return gcp.collect(name, asked)
    except LoggedOutError as error:
        rule = f"not logged in to Google Cloud: {error}".rstrip(".")
        raise UserError([Problem("credentials", None, rule, LOG_IN, code="logged-out")]) from None
    except gcp.UnansweredError as error:
        refusal = error.args[0]
        rule, fix = f"{refusal}: {refusal.message}", _fix(refusal.code, name)
        problem = Problem("--project", name, rule, fix, code="project-refused")
        raise UserError([problem]) from None


# Google, "Creating and managing projects"; older ones have a domain before a colon.
_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")


def _fix(code: str, project: str) -> str:
    if code == "SERVICE_DISABLED":
        apis = "cloudresourcemanager.googleapis.com cloudasset.googleapis.com"
        return f"Enable it: gcloud services enable {apis} --project {project}"
    if code in ("PERMISSION_DENIED", "NOT_FOUND"):
        return "Look at its id, and at your rights there (docs/how-to/live.md)."
    return "Try again later; look at the connection to Google, and at quotas."
