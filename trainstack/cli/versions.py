"""`trainstack versions`: what a stack pins, what is newer, and which nodes taking it would end."""

import datetime
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.errors import USAGE_EXIT_CODE, Problem, UserError
from trainstack.cli.stack import Stack

if TYPE_CHECKING:
    from infra.stackspec import StackSpec
    from infra.stackspec.aws.cloud import AwsSpec
    from infra.stackspec.gcp.cloud import GcpSpec
    from infra.stackspec.layouts import ClusterLayout
    from trainstack.versions.pins import Pin

Update = Annotated[
    bool,
    typer.Option(
        "--update",
        help="Write the newest add-ons and node image into the stack file. AWS only: GKE chooses its own.",
    ),
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
        from trainstack.versions.newest import order  # noqa: PLC0415

        return self.newest is not None and order(self.newest) > order(self.pin.version or "")


def versions(stack: Stack, *, update: Update = False) -> None:
    """Show what is newer than the pinned versions, and what taking it would drain; asks the cloud.

    Exit codes: 0 everything was asked; 2 not everything could be asked, or bad input.
    """
    from infra.stackspec.load import CONFIG  # noqa: PLC0415

    show(stack, CONFIG, update=update)


def show(stack: str, folder: Path, *, update: bool) -> None:
    """The same for a stack file of a folder. Raises UserError; Exit where not all could be asked."""
    from infra import stackspec  # noqa: PLC0415

    spec = stackspec.load_file(stack, folder).spec
    if update:
        _refuse_on_gke(spec)
    rows = _rows(spec)
    for row in rows:
        typer.echo(_line(row))
    newer = [row for row in rows if row.is_newer]
    typer.echo(f"{len(newer)} newer; {sum(row.newest is None for row in rows)} not known")
    _refuse_logged_out(rows)
    if update:
        _update(stack, folder, newer)
    if any(row.error for row in rows):
        raise typer.Exit(USAGE_EXIT_CODE)


def _refuse_on_gke(spec: "StackSpec") -> None:
    """Raise UserError for a stack whose file has no version that could be written."""
    if spec.cloud != "gcp":
        return
    rule = "a stack file pins no add-on and no node image on Google Cloud: GKE brings them with its version"
    fix = (
        "Leave --update out. The minor version is layout.kubernetes_version, of the channel on.channel; "
        "patches come in the window on.maintenance; charts come with this checkout."
    )
    raise UserError([Problem("--update", None, rule, fix)])


def _update(stack: str, folder: Path, newer: list[Row]) -> None:
    from trainstack.versions import stack_file  # noqa: PLC0415

    addons = {row.pin.name: str(row.newest) for row in newer if row.pin.kind == "add-on"}
    image = next((row.newest for row in newer if row.pin.kind == "node image"), None)
    path = folder / f"Pulumi.{stack}.yaml"
    stack_file.update(path, addons, image, datetime.date.today())
    written = f"{len(addons) + bool(image)} written to {path.name}"
    typer.echo(f"{written}; `trainstack preview -s {stack}` shows what that changes")


def _refuse_logged_out(rows: list[Row]) -> None:
    from infra.clouds.aws import login as aws_login  # noqa: PLC0415
    from infra.clouds.gcp import login as google_login  # noqa: PLC0415

    for row in rows:
        if isinstance(row.error, aws_login.LoggedOutError):
            said, fix = f"AWS cannot be asked: {row.error}", aws_login.LOG_IN
        elif isinstance(row.error, google_login.LoggedOutError):
            said, fix = f"Google Cloud cannot be asked: {row.error}", google_login.LOG_IN
        else:
            continue
        raise UserError([Problem("credentials", None, said, fix)])


def _rows(spec: "StackSpec") -> list[Row]:
    """Every pin with its newest version. Raises UserError for a stack without a cluster of a cloud."""
    from infra.stackspec.aws.cloud import AwsSpec  # noqa: PLC0415
    from infra.stackspec.gcp.cloud import GcpSpec  # noqa: PLC0415
    from infra.stackspec.layouts import ClusterLayout  # noqa: PLC0415

    match spec.layout, spec.on:
        case ClusterLayout() as layout, AwsSpec() as aws:
            return _eks(spec, layout, aws)
        case ClusterLayout() as layout, GcpSpec() as gcp:
            return _gke(spec, layout, gcp)
    fix = "Name a stack on AWS or Google Cloud with a cluster."
    raise UserError([Problem("stack", spec.name, "only clusters pin versions", fix)])


def _eks(spec: "StackSpec", layout: "ClusterLayout", on: "AwsSpec") -> list[Row]:
    from components.kubernetes.charts import charts_on  # noqa: PLC0415
    from infra.clouds.aws import login as aws_login  # noqa: PLC0415
    from stacks.clouds.aws.cluster import ADDONS  # noqa: PLC0415
    from trainstack.versions import newest  # noqa: PLC0415
    from trainstack.versions.pins import pins  # noqa: PLC0415

    @functools.cache
    def client(service: str) -> Any:
        return aws_login.clients()(service, spec.region)

    known, minor = charts_on("aws"), layout.kubernetes_version
    ask: dict[str, Callable[[Pin], str | None]] = {
        "Kubernetes": lambda _: newest.kubernetes(client("eks")),
        "node image": lambda _: newest.node_image(client("ssm"), minor),
        "add-on": lambda pin: newest.addon(client("eks"), pin.name, minor, pin.version),
        "chart": lambda pin: newest.chart(known[pin.name].chart, known[pin.name].repository, newest.fetched),
    }
    pinned = {name: chart.version for name, chart in known.items()}
    return [_asked(pin, ask[pin.kind]) for pin in pins(layout, on, ADDONS, pinned)]


def _gke(spec: "StackSpec", layout: "ClusterLayout", on: "GcpSpec") -> list[Row]:
    from components.kubernetes.charts import charts_on  # noqa: PLC0415
    from infra.stackspec.model import demanded  # noqa: PLC0415
    from trainstack.preflight.deployment import google_project  # noqa: PLC0415
    from trainstack.versions import gke, newest  # noqa: PLC0415
    from trainstack.versions.pins import gke_pins  # noqa: PLC0415

    def offered(pin: "Pin") -> str | None:
        config = google_project(spec, layout, on).server_config
        return gke.newest_minor(config, demanded(on.channel), str(pin.version))

    known = charts_on("gcp")
    ask: dict[str, Callable[[Pin], str | None]] = {
        "Kubernetes": offered,
        "chart": lambda pin: newest.chart(known[pin.name].chart, known[pin.name].repository, newest.fetched),
    }
    pinned = {name: chart.version for name, chart in known.items()}
    return [_asked(pin, ask[pin.kind]) for pin in gke_pins(layout, on, pinned)]


def _asked(pin: "Pin", ask: "Callable[[Pin], str | None]") -> Row:
    import requests  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    from infra.clouds.aws import login as aws_login  # noqa: PLC0415
    from infra.clouds.gcp import login as google_login  # noqa: PLC0415
    from infra.clouds.gcp.api import ApiRequestError  # noqa: PLC0415

    try:
        with aws_login.logged_in(), google_login.logged_in():
            return Row(pin, ask(pin))
    except (aws_login.LoggedOutError, BotoCoreError, ClientError) as error:
        return Row(pin, None, error)
    except (google_login.LoggedOutError, ApiRequestError) as error:
        return Row(pin, None, error)
    except (requests.RequestException, ValueError, KeyError) as error:
        return Row(pin, None, error)


def _line(row: Row) -> str:
    pin = row.pin
    pinned = pin.version or "EKS's choice"
    shown = row.newest or f"not known: {row.error or 'no version is offered'}"
    drains = f"  drains {pin.drains}" if row.is_newer else ""
    return f"{pin.kind:11} {pin.name:27} {pinned:22} {shown}{drains}"
