"""The checks of a project of Google Cloud. They only read: docs/preflight.md has roles that allow no more.

Untested in a real project: requests and answers are held against the discovery documents of Google's APIs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from infra.google_login import LOG_IN, LoggedOutError
from infra.preflight.answers import Answer, State
from infra.preflight.gcp import (
    alerts,
    apis,
    billing,
    identity,
    leftovers,
    permissions,
    places,
    policies,
    quotas,
    reservations,
    versions,
    way_in,
)
from infra.preflight.gcp.project import Project, answered

Check = Callable[[Project], Iterator[Answer]]

# Who is asking comes first: without a project that answers, the other answers mean nothing.
IDENTITY: Final = "identity"
CHECKS: Final[Mapping[str, Check]] = {
    "administrators": identity.administers,
    "billing": billing.enabled,
    "billing-account": billing.account,
    "apis": apis.enabled,
    "permissions": permissions.deploying_in,
    "organization-policies": policies.standing_in_the_way,
    "zones": places.zones,
    "types": places.types,
    "accelerators": places.accelerators,
    "kubernetes-version": versions.kubernetes,
    "quotas": quotas.room,
    "reservations": reservations.capacity,
    "leftovers": leftovers.names,
    "way-in": way_in.api,
    "gke-auth-plugin": way_in.program,
    "alert-mail": alerts.mail,
}


def ask(project: Project, only: Collection[str] = tuple(CHECKS)) -> list[Answer]:
    """The identity and the checks named in `only`, in their order."""
    try:
        who = list(answered(IDENTITY, identity.caller, project))
        if any(answer.state is not State.READY for answer in who):
            return who
        checks = (answered(name, check, project) for name, check in CHECKS.items() if name in only)
        return [*who, *(answer for answers in checks for answer in answers)]
    except LoggedOutError as error:
        return [Answer(IDENTITY, State.UNKNOWN, str(error), LOG_IN)]
