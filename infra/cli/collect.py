"""`trainstack collect`: what an account has, written down, to be judged now or later."""

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


Live = Annotated[Cloud, typer.Option("--live", help="The cloud to ask, with the credentials of this shell.")]
Region = Annotated[
    str | None, typer.Option("--region", help="Which region to ask about; else that of the environment.")
]
Out = Annotated[Path, typer.Option("--out", help="Where to write the snapshot.", metavar="FILE")]


def collect(live: Live, out: Out, region: Region = None) -> None:
    """Write down what an account answers about a region, for `trainstack audit --snapshot`.

    Only reads: docs/live.md has the policy that allows no more. What is refused is written down as such.
    """
    from policies.sources.live import snapshot  # noqa: PLC0415 - help comes without them
    from policies.sources.live.records import account  # noqa: PLC0415

    found = collected(live, region)
    snapshot.write(found, out)
    typer.echo(f"{out}: {len(account(found).resources)} resources of account {found.account}, {found.region}")
    refused = sorted({f"{one}" for heard in found.answers.values() for one in heard.refusals})
    for said in refused:
        typer.echo(f"  {said}")
    if refused:
        typer.echo("Rules that need these are undetermined; docs/live.md has a policy that allows them.")


def collected(cloud: Cloud, region: str | None) -> "Snapshot":
    """What an account answers now. Raises UserError where there is none to ask."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to import

    from infra.aws_login import LOG_IN, LoggedOutError, default_region, told  # noqa: PLC0415
    from infra.collect import aws  # noqa: PLC0415

    assert cloud is Cloud.AWS
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
