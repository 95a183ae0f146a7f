"""Preflight checks and quotas of a stack on Google Cloud."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from infra.catalog.gcp import quotas as limits
from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.several.derived import of_stack
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.deployment import Preflight, unsupported
from trainstack.preflight.gcp.needs import needs
from trainstack.preflight.shortfalls import Short

if TYPE_CHECKING:  # slow to import
    from trainstack.preflight.gcp import Check

_ATTEMPTS = 4
"""Of each request to Google Cloud, before throttling counts as no response."""
# Failures that `up` would hit late. A caller without the right to check them can deploy all the same.
_BEFORE_UP = (
    "billing",
    "apis",
    "organization-policies",
    "kubernetes-version",
    "leftovers",
    "way-in",
    "gke-auth-plugin",
)
_BEFORE_UP_SLURM = ("billing", "apis", "organization-policies", "gcloud")
_BEFORE_UP_JOBS = ("billing", "apis", "organization-policies")


def preflight_of(
    spec: StackSpec,
    further: "Mapping[str, Check] | None" = None,
    together: Sequence[StackSpec] = (),
) -> Preflight:
    """The checks of a stack, and further ones, with the credentials of the environment. Raises UserError.

    `together`: specs of the stacks of one deployment, this one included.
    """
    from infra.clouds.gcp import login  # noqa: PLC0415 - slow to import
    from trainstack.preflight.gcp import IDENTITY, ask, checks_of, quotas  # noqa: PLC0415
    from trainstack.preflight.gcp.project import Project  # noqa: PLC0415

    spec = of_stack(spec)
    layout, on = spec.layout, spec.on
    if not isinstance(layout, ClusterLayout | SmallLayout | SlurmLayout) or not isinstance(on, GcpSpec):
        raise unsupported(spec)
    try:
        project = Project.logged_in(
            spec, layout, on, _ATTEMPTS, tuple(one for one in together if one.name != spec.name)
        )
    except login.LoggedOutError as error:
        variable = "GOOGLE_APPLICATION_CREDENTIALS"
        raise UserError([Problem(variable, None, str(error), login.LOG_IN, code="logged-out")]) from None
    return Preflight(
        f"project {on.project}",
        IDENTITY,
        tuple(checks_of(project, further)),
        _before_up(layout),
        lambda only: ask(project, only, further),
        lambda: quotas.left(project),
    )


def _before_up(layout: ClusterLayout | SmallLayout | SlurmLayout) -> tuple[str, ...]:
    if isinstance(layout, SlurmLayout):
        return _BEFORE_UP_SLURM
    return _BEFORE_UP_JOBS if isinstance(layout, SmallLayout) else _BEFORE_UP


def beyond(spec: StackSpec, overrides: Mapping[str, float], *, largest: bool) -> list[Short]:
    """The quotas that a deployment with its validation exceeds, or the stack at its largest; worst first.

    Quotas of Google Cloud have no known defaults: one without an override is never exceeded.
    """
    assert isinstance(spec.on, GcpSpec)
    needed = needs(spec)
    found = limits.exceeded(needed.most if largest else needed.now, overrides)
    return [_short(one, spec.on.project, spec.region) for one in found]


def _short(short: limits.Shortfall, project: str, region: str) -> Short:
    quota = short.quota
    # Of Compute Engine, as in public logs: "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."
    metric = quota.quota_id.partition("-per-")[0].replace("-", "_")
    where = f"in region {region}" if quota.regional else "globally"
    message = f"Quota '{metric}' exceeded. Limit: {short.limit:.1f} {where}."
    return Short(quota.key, message, str(short), limits.request(quota.key, short.wanted, project, region))
