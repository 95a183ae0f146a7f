"""What a deployment asks of the real account or project before it begins."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from trainstack.preflight.answers import Answer, State

if TYPE_CHECKING:
    from trainstack.preflight.gcp.project import Project

_ATTEMPTS = 4
"""Of each request to Google Cloud, before throttling counts as no answer."""
# What would end an `up` that has begun: late, or not at all. Who may not ask may deploy all the same.
_BEFORE_UP_AWS = (
    "kubernetes-version",
    "principals",
    "leftovers",
    "certificate",
    "client-secret",
    "way-in",
    "aws-cli",
)
_BEFORE_UP_AWS_JOBS = ("job-logs",)
_BEFORE_UP_GCP = (
    "billing",
    "apis",
    "organization-policies",
    "kubernetes-version",
    "leftovers",
    "way-in",
    "gke-auth-plugin",
)
_BEFORE_UP_GCP_JOBS = ("billing", "apis", "organization-policies")


@dataclass(frozen=True)
class Preflight:
    """The checks of one cloud, for one stack."""

    place: str
    """What is asked, in words: an account, or a project."""
    identity: str
    """The check that comes first, and is always made."""
    checks: tuple[str, ...]
    before_up: tuple[str, ...]
    """Those that `up` makes itself."""
    ask: Callable[[Collection[str]], list[Answer]]
    left: Callable[[], Mapping[str, float]]
    """What others leave to the stack of each quota that it takes."""


def preflight_of(spec: StackSpec) -> Preflight:
    """The checks of the cloud of a stack, with the credentials of the environment. Raises UserError."""
    match spec.layout, spec.on:
        case (ClusterLayout() | SmallLayout()) as layout, AwsSpec() as on:
            return _aws(spec, layout, on)
        case (ClusterLayout() | SmallLayout()) as layout, GcpSpec() as on:
            return _gcp(spec, layout, on)
    fix = "Use aws or gcp, and the profile small, small-cluster or medium."
    raise UserError([Problem("trainstack:cloud", spec.cloud, "no checks are known for it", fix)])


def refuse_what_cannot_finish(spec: StackSpec) -> None:
    """Raise UserError where `up` would go into another account, or could not make or reach its cluster."""
    preflight = preflight_of(spec)
    wrong = [
        answer
        for answer in preflight.ask(preflight.before_up)
        if answer.state is State.SHORT
        or (answer.state is State.UNKNOWN and answer.check == preflight.identity)
    ]
    if wrong:
        raise UserError([Problem(answer.check, None, answer.said, answer.fix) for answer in wrong])


def _aws(spec: StackSpec, layout: ClusterLayout | SmallLayout, on: AwsSpec) -> Preflight:
    from infra.clouds.aws import login as aws_login  # noqa: PLC0415 - the SDK of one cloud is slow to import
    from trainstack.preflight.aws import IDENTITY, ask, checks_of, quotas  # noqa: PLC0415
    from trainstack.preflight.aws.account import Account  # noqa: PLC0415

    try:
        account = Account(spec, layout, on, aws_login.clients())
    except aws_login.LoggedOutError as error:
        raise UserError([Problem("AWS_PROFILE", None, str(error), "Name a profile that exists.")]) from None
    return Preflight(
        f"account {on.account_id}",
        IDENTITY,
        tuple(checks_of(account)),
        _BEFORE_UP_AWS_JOBS if isinstance(layout, SmallLayout) else _BEFORE_UP_AWS,
        lambda only: ask(account, only),
        lambda: quotas.left(account),
    )


def google_project(spec: StackSpec, layout: ClusterLayout | SmallLayout, on: GcpSpec) -> "Project":
    """The project of a stack, with the credentials of the environment. Raises LoggedOutError."""
    from infra.clouds.gcp import login as google_login  # noqa: PLC0415
    from trainstack.preflight.gcp.project import Project  # noqa: PLC0415

    # As the stack's provider does it: what has no project of its own counts against this one.
    session, _ = google_login.session(_ATTEMPTS, on.project)
    credentials = getattr(session, "credentials", None)
    return Project(spec, layout, on, session, lambda: google_login.who(credentials))


def _gcp(spec: StackSpec, layout: ClusterLayout | SmallLayout, on: GcpSpec) -> Preflight:
    from infra.clouds.gcp import login as google_login  # noqa: PLC0415
    from trainstack.preflight.gcp import IDENTITY, ask, checks_of, quotas  # noqa: PLC0415

    try:
        project = google_project(spec, layout, on)
    except google_login.LoggedOutError as error:
        problem = Problem("GOOGLE_APPLICATION_CREDENTIALS", None, str(error), google_login.LOG_IN)
        raise UserError([problem]) from None
    return Preflight(
        f"project {on.project}",
        IDENTITY,
        tuple(checks_of(project)),
        _BEFORE_UP_GCP_JOBS if isinstance(layout, SmallLayout) else _BEFORE_UP_GCP,
        lambda only: ask(project, only),
        lambda: quotas.left(project),
    )
