"""`trainstack collect`: what an account has, written down, to be judged now or later."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError

if TYPE_CHECKING:
    from policies.sources.live.snapshot import Snapshot


class Cloud(StrEnum):
    """What can be asked."""

    AWS = "aws"
    KUBERNETES = "kubernetes"


Live = Annotated[Cloud, typer.Option("--live", help="What to ask, with the credentials of this shell.")]
Region = Annotated[
    str | None, typer.Option("--region", help="Which region to ask about; else that of the environment.")
]
Context = Annotated[
    str | None,
    typer.Option("--context", help="Which context of the kubeconfig to ask; else its current one."),
]
Out = Annotated[Path, typer.Option("--out", help="Where to write the snapshot.", metavar="FILE")]


def collect(live: Live, out: Out, region: Region = None, context: Context = None) -> None:
    """Write down what an account answers about a region, or a cluster, for `trainstack audit --snapshot`.

    Only reads: docs/live.md has the rights that allow no more. What is refused is written down as such.
    """
    from policies.sources.live import snapshot  # noqa: PLC0415 - help comes without them
    from policies.sources.live.records import account  # noqa: PLC0415

    found = collected(live, region, context)
    snapshot.write(found, out)
    whose = "cluster" if live is Cloud.KUBERNETES else "account"
    count = len(account(found).resources)
    typer.echo(f"{out}: {count} resources of {whose} {found.account}, {found.region}")
    refused = sorted({f"{one}" for heard in found.answers.values() for one in heard.refusals})
    for said in refused:
        typer.echo(f"  {said}")
    if refused:
        typer.echo("Rules that need these are undetermined; docs/live.md has the rights that allow them.")


def collected(cloud: Cloud, region: str | None, context: str | None) -> "Snapshot":
    """What an account or a cluster answers now. Raises UserError where there is none to ask."""
    name, given, other = (
        ("--region", region, "a cluster is asked about all of it")
        if cloud is Cloud.KUBERNETES
        else ("--context", context, "an account has no contexts")
    )
    if given is not None:
        raise UserError([Problem(name, given, other, f"Leave out {name}.")])
    if cloud is Cloud.AWS:
        return _of_aws(region)
    from infra.collect import kubernetes  # noqa: PLC0415

    return kubernetes.collect(context)


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
