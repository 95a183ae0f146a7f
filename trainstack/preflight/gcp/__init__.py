"""Read-only checks of a Google Cloud project; docs/reference/preflight.md has the roles that they need.

Untested in a real project: requests and answers are held against the discovery documents of Google's APIs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from infra.clouds.gcp.login import LOG_IN, LoggedOutError
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp import (
    alerts,
    apis,
    billing,
    identity,
    jobs,
    leftovers,
    permissions,
    places,
    policies,
    quotas,
    reservations,
    versions,
    way_in,
)
from trainstack.preflight.gcp.project import Project, answered

Check = Callable[[Project], Iterator[Answer]]

# The identity comes first: without access to the project, the other results mean nothing.
IDENTITY: Final = "identity"
CHECKS: Final[Mapping[str, Check]] = {
    "administrators": identity.administers,
    "billing": billing.enabled,
    "billing-account": billing.account,
    "apis": apis.enabled,
    "permissions": permissions.deploying_in,
    "organization-policies": policies.blocking,
    "zones": places.zones,
    "types": places.types,
    "purchases": places.purchases,
    "accelerators": places.accelerators,
    "scheduler": places.scheduler,
    "kubernetes-version": versions.kubernetes,
    "quotas": quotas.room,
    "reservations": reservations.capacity,
    "leftovers": leftovers.names,
    "way-in": way_in.api,
    "gke-auth-plugin": way_in.program,
    "alert-mail": alerts.mail,
}


JOB_CHECKS: Final[Mapping[str, Check]] = {
    "billing": billing.enabled,
    "billing-account": billing.account,
    "apis": apis.enabled,
    "permissions": permissions.deploying_in,
    "organization-policies": policies.blocking,
    "zones": jobs.zones,
    "purchases": places.purchases,
    "scheduler": places.scheduler,
    "job-quotas": jobs.room,
    "job-reservations": jobs.reserved,
    "tracking-login": identity.login,
    "alert-mail": alerts.mail,
}


SLURM_CHECKS: Final[Mapping[str, Check]] = {
    "billing": billing.enabled,
    "billing-account": billing.account,
    "apis": apis.enabled,
    "permissions": permissions.deploying_in,
    "organization-policies": policies.blocking,
    "zones": places.zones,
    "types": places.types,
    "purchases": places.purchases,
    "accelerators": places.accelerators,
    "scheduler": places.scheduler,
    "quotas": quotas.room,
    "reservations": reservations.capacity,
    "gcloud": way_in.login,
    "alert-mail": alerts.mail,
}
"""Checks of a stack with Slurm."""


def checks_of(project: Project, further: Mapping[str, Check] | None = None) -> Mapping[str, Check]:
    """The checks for the layout of a stack, and further ones for its folder."""
    own = JOB_CHECKS if isinstance(project.layout, SmallLayout) else CHECKS
    own = SLURM_CHECKS if isinstance(project.layout, SlurmLayout) else own
    return {**own, **(further or {})}


def ask(
    project: Project, only: Collection[str] | None = None, further: Mapping[str, Check] | None = None
) -> list[Answer]:
    """Run the identity check and those named in `only`, in their order; without it all."""
    known = checks_of(project, further)
    try:
        who = list(answered(IDENTITY, identity.caller, project))
        if any(answer.state is not State.READY for answer in who):
            return who
        checks = (
            answered(name, check, project) for name, check in known.items() if only is None or name in only
        )
        return [*who, *(answer for answers in checks for answer in answers)]
    except LoggedOutError as error:
        return [Answer(IDENTITY, State.UNKNOWN, str(error), LOG_IN)]
