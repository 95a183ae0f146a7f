"""`trainstack versions`: what a stack pins, what is newer, and which nodes taking it would end."""

import datetime
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.cli.stack import Stack
from infra.errors import USAGE_EXIT_CODE, Problem, UserError

if TYPE_CHECKING:
    from infra.releases.pins import Pin
    from infra.stackspec import StackSpec

Update = Annotated[
    bool, typer.Option("--update", help="Write the newest add-ons and node image into the stack file.")
]


@dataclass(frozen=True)
class Row:
    """One line: a pin, and the newest version or why it is not known."""

    pin: "Pin"
    newest: str | None
    error: Exception | None = None
    """Why it could not be asked for."""

    @property
    def is_newer(self) -> bool:
        """Whether there is something to take."""
        from infra.releases.newest import order  # noqa: PLC0415

        return self.newest is not None and order(self.newest) > order(self.pin.version or "")


def versions(stack: Stack, *, update: Update = False) -> None:
    """Show what is newer than the pinned versions, and what taking it would drain. Needs AWS credentials.

    Exit codes: 0 everything was asked; 2 not everything could be asked, or bad input.
    """
    from infra.stackspec.load import CONFIG  # noqa: PLC0415

    show(stack, CONFIG, update=update)


def show(stack: str, folder: Path, *, update: bool) -> None:
    """The same for a stack file of a folder. Raises UserError; Exit where not all could be asked."""
    from infra import stackspec  # noqa: PLC0415

    rows = _rows(stackspec.load_file(stack, folder).spec)
    for row in rows:
        typer.echo(_line(row))
    newer = [row for row in rows if row.is_newer]
    typer.echo(f"{len(newer)} newer; {sum(row.newest is None for row in rows)} not known")
    _refuse_logged_out(rows)
    if update:
        _update(stack, folder, newer)
    if any(row.error for row in rows):
        raise typer.Exit(USAGE_EXIT_CODE)


def _update(stack: str, folder: Path, newer: list[Row]) -> None:
    from infra.releases import stack_file  # noqa: PLC0415

    addons = {row.pin.name: str(row.newest) for row in newer if row.pin.kind == "add-on"}
    image = next((row.newest for row in newer if row.pin.kind == "node image"), None)
    path = folder / f"Pulumi.{stack}.yaml"
    stack_file.update(path, addons, image, datetime.date.today())
    written = f"{len(addons) + bool(image)} written to {path.name}"
    typer.echo(f"{written}; `trainstack preview -s {stack}` shows what that changes")


def _refuse_logged_out(rows: list[Row]) -> None:
    from infra.aws_login import LOG_IN, LoggedOutError  # noqa: PLC0415

    why = next((row.error for row in rows if isinstance(row.error, LoggedOutError)), None)
    if why:
        raise UserError([Problem("credentials", None, f"AWS cannot be asked: {why}", LOG_IN)])


def _rows(spec: "StackSpec") -> list[Row]:
    """Every pin with its newest version. Raises UserError for a stack without EKS."""
    from components.kubernetes.charts import charts  # noqa: PLC0415
    from infra import aws_login  # noqa: PLC0415
    from infra.releases import newest  # noqa: PLC0415
    from infra.releases.pins import pins  # noqa: PLC0415
    from infra.stackspec.clouds import AwsSpec  # noqa: PLC0415
    from infra.stackspec.layouts import MediumLayout  # noqa: PLC0415
    from stacks.clouds.aws import ADDONS  # noqa: PLC0415

    if not isinstance(spec.on, AwsSpec) or not isinstance(spec.layout, MediumLayout):
        fix = "Name a stack on AWS with a cluster."
        raise UserError([Problem("stack", spec.name, "only EKS clusters pin versions", fix)])

    @functools.cache
    def client(service: str) -> Any:
        return aws_login.clients()(service, spec.region)

    known, minor = charts(), spec.layout.kubernetes_version
    ask: dict[str, Callable[[Pin], str | None]] = {
        "Kubernetes": lambda _: newest.kubernetes(client("eks")),
        "node image": lambda _: newest.node_image(client("ssm"), minor),
        "add-on": lambda pin: newest.addon(client("eks"), pin.name, minor, pin.version),
        "chart": lambda pin: newest.chart(known[pin.name].chart, known[pin.name].repository, newest.fetched),
    }
    pinned = {name: chart.version for name, chart in known.items()}
    return [_asked(pin, ask[pin.kind]) for pin in pins(spec.layout, spec.on, ADDONS, pinned)]


def _asked(pin: "Pin", ask: "Callable[[Pin], str | None]") -> Row:
    import requests  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    from infra.aws_login import LoggedOutError, logged_in  # noqa: PLC0415

    try:
        with logged_in():
            return Row(pin, ask(pin))
    except (LoggedOutError, BotoCoreError, ClientError) as error:
        return Row(pin, None, error)
    except (requests.RequestException, ValueError, KeyError) as error:
        return Row(pin, None, error)


def _line(row: Row) -> str:
    pin = row.pin
    pinned = pin.version or "EKS's choice"
    shown = row.newest or f"not known: {row.error or 'no version is offered'}"
    drains = f"  drains {pin.drains}" if row.is_newer else ""
    return f"{pin.kind:11} {pin.name:27} {pinned:22} {shown}{drains}"
