"""Read-only checks of an AWS account; docs/reference/preflight.md has the policy that they need.

Untested in a real account: requests and answers are held against the service models of botocore.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from infra.clouds.aws.login import LOG_IN, LoggedOutError
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws import (
    alerts,
    disk_key,
    identity,
    jobs,
    load_balancer,
    money,
    organization,
    permissions,
    places,
    principals,
    quotas,
    reservations,
    way_in,
)
from trainstack.preflight.aws.account import Account, answered
from trainstack.preflight.aws.slurm import cluster as slurm_cluster
from trainstack.preflight.aws.slurm import image

Check = Callable[[Account], Iterator[Answer]]

# The identity comes first: without the right account, the other results mean nothing.
IDENTITY: Final = "identity"
CHECKS: Final[Mapping[str, Check]] = {
    "region": places.region,
    "services": places.services,
    "zones": places.zones,
    "types": places.types,
    "kubernetes-version": places.kubernetes,
    "quotas": quotas.room,
    "reservations": reservations.capacity,
    disk_key.CHECK: disk_key.usable,
    "permissions": permissions.deploying,
    "organization": organization.policies,
    "principals": principals.named,
    "leftovers": places.leftovers,
    "way-in": way_in.api,
    "aws-cli": way_in.program,
    "certificate": load_balancer.certificate,
    "client-secret": load_balancer.client_secret,
    "cost-anomalies": money.anomalies,
    "cost-tags": money.tags,
    "alert-mail": alerts.mail,
}
JOB_CHECKS: Final[Mapping[str, Check]] = {
    "region": places.region,
    "services": places.services,
    "zones": jobs.zones,
    "job-quotas": quotas.room_of_jobs,
    "job-plans": jobs.plans,
    "quotas": quotas.room,
    "permissions": permissions.deploying,
    "organization": organization.policies,
    "job-logs": jobs.log_groups,
    "cost-anomalies": money.anomalies,
    "cost-tags": money.tags,
    "alert-mail": alerts.mail,
}
"""Checks of a stack without a cluster."""
SLURM_CHECKS: Final[Mapping[str, Check]] = {
    "region": places.region,
    "services": places.services,
    "zones": jobs.zones,
    "types": places.types,
    "quotas": quotas.room,
    "reservations": reservations.capacity,
    image.CHECK: image.usable,
    slurm_cluster.CHECK: slurm_cluster.possible,
    disk_key.CHECK: disk_key.usable,
    "permissions": permissions.deploying,
    "organization": organization.policies,
    "leftovers": slurm_cluster.leftovers,
    "cost-anomalies": money.anomalies,
    "cost-tags": money.tags,
}
"""Checks of a stack with Slurm."""
UP_CHECKS: Final[Mapping[str, Check]] = {"quotas-of-up": quotas.enough}
"""Checks that only `up` makes; `preflight` makes stricter ones."""


def checks_of(account: Account, further: Mapping[str, Check] | None = None) -> Mapping[str, Check]:
    """The checks for the layout of a stack, and further ones for its folder."""
    own = JOB_CHECKS if isinstance(account.layout, SmallLayout) else CHECKS
    own = SLURM_CHECKS if isinstance(account.layout, SlurmLayout) else own
    return {**own, **(further or {})}


def ask(
    account: Account, only: Collection[str] | None = None, further: Mapping[str, Check] | None = None
) -> list[Answer]:
    """Run the identity check and those named in `only`, in their order; without it all of `preflight`."""
    known = checks_of(account, further)
    if only is not None:
        known = {**known, **UP_CHECKS}
    try:
        who = list(answered(IDENTITY, identity.caller, account))
        if any(answer.state is not State.READY for answer in who):
            return who
        checks = (
            answered(name, check, account) for name, check in known.items() if only is None or name in only
        )
        return [*who, *(answer for answers in checks for answer in answers)]
    except LoggedOutError as error:
        return [Answer(IDENTITY, State.UNKNOWN, str(error), LOG_IN)]
