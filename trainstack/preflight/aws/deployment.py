"""Preflight checks and quotas of a stack on AWS."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from infra.catalog.aws import quotas as limits
from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AssumeRoleSpec, AwsSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.several.derived import of_stack
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.aws.needs import needs
from trainstack.preflight.deployment import Preflight, manager_elsewhere, unsupported
from trainstack.preflight.shortfalls import Short

if TYPE_CHECKING:  # slow to import
    from infra.clouds.aws import login
    from trainstack.preflight.aws import Check

# Failures that `up` would hit late. A caller without the right to check them can deploy all the same.
_BEFORE_UP = (
    "kubernetes-version",
    "principals",
    "leftovers",
    "disk-key",
    "certificate",
    "client-secret",
    "way-in",
    "aws-cli",
    "quotas-of-up",
)
_BEFORE_UP_JOBS = ("quotas-of-up",)
_BEFORE_UP_SLURM = ("image", "slurm-cluster", "leftovers", "disk-key", "quotas-of-up")


def preflight_of(
    spec: StackSpec,
    further: "Mapping[str, Check] | None" = None,
    together: Sequence[StackSpec] = (),
) -> Preflight:
    """The checks of a stack, and further ones, with the credentials of the environment. Raises UserError.

    `together`: specs of the stacks of one deployment, this one included.
    """
    from infra.clouds.aws import login  # noqa: PLC0415 - slow to import
    from trainstack.preflight.aws import IDENTITY, ask, checks_of, quotas  # noqa: PLC0415
    from trainstack.preflight.aws.account import Account  # noqa: PLC0415

    spec = of_stack(spec)
    layout, on = spec.layout, spec.on
    if not isinstance(layout, ClusterLayout | SmallLayout | SlurmLayout) or not isinstance(on, AwsSpec):
        raise unsupported(spec)
    if on.slinky is not None:
        raise unsupported(spec)
    try:
        deployer = login.clients() if on.assume_role else None
        own = login.clients(role=_role(spec, on.assume_role)) if on.assume_role else login.clients()
        beside = tuple(one for one in together if one.name != spec.name and _shares_quotas(one, spec))
        away = manager_elsewhere(spec, together)
        account = Account(spec, layout, on, own, beside=beside, deployer=deployer, manager=away)
    except login.LoggedOutError as error:
        fix = "Name a profile that exists."
        raise UserError([Problem("AWS_PROFILE", None, str(error), fix, code="logged-out")]) from None
    return Preflight(
        f"account {on.account_id}",
        IDENTITY,
        tuple(checks_of(account, further)),
        _before_up(layout),
        lambda only: ask(account, only, further),
        lambda: quotas.left(account),
    )


def _before_up(layout: ClusterLayout | SmallLayout | SlurmLayout) -> tuple[str, ...]:
    if isinstance(layout, SlurmLayout):
        return _BEFORE_UP_SLURM
    return _BEFORE_UP_JOBS if isinstance(layout, SmallLayout) else _BEFORE_UP


def _role(spec: StackSpec, given: AssumeRoleSpec) -> "login.AssumedRole":
    from infra.clouds.aws import login  # noqa: PLC0415 - slow to import

    session = f"trainstack-{spec.name}-preflight"
    return login.AssumedRole(given.role_arn, session, spec.region, given.external_id)


def _shares_quotas(one: StackSpec, spec: StackSpec) -> bool:
    """Return whether two stacks are in one region of one account."""
    accounts = {on.account_id for on in (one.on, spec.on) if isinstance(on, AwsSpec)}
    return one.cloud == spec.cloud and one.region == spec.region and len(accounts) == 1


def beyond(spec: StackSpec, overrides: Mapping[str, float], *, largest: bool) -> list[Short]:
    """The quotas that a deployment with its validation exceeds, or the stack at its largest; worst first."""
    taken = needs(spec)
    found = limits.exceeded(taken.most if largest else taken.now, limits.limits(overrides))
    return [
        Short(short.key, short.words(), str(short), limits.request(short.key, short.wanted, spec.region))
        for short in found
    ]
