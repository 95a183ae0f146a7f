"""The check of quotas: the values of the account, their use, and the needs of the stack at its largest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from botocore.exceptions import ClientError

from infra.catalog.aws import facts
from infra.catalog.aws.quotas import request
from infra.catalog.demand import Demand, by_quota
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account, unanswered
from trainstack.preflight.aws.needs import needs
from trainstack.preflight.aws.use import Use

_NEVER_RAISED = "NoSuchResourceException"
_PENDING = ("PENDING", "CASE_OPENED")


@dataclass(frozen=True)
class _Room:
    allowed: float
    used: float


def room(account: Account) -> Iterator[Answer]:
    """Each quota allows the use of others plus the needs of the stack with every pool at its largest."""
    use = Use(account)
    for key, demands in by_quota(needs(account.spec).most).items():
        try:
            yield _judged(account, key, demands, _room(account, use, key))
        except ClientError as error:
            yield unanswered(f"quota {key}", error)


def left(account: Account) -> Mapping[str, float]:
    """The rest that others leave of each quota that the stack needs; without unreadable quotas."""
    found: dict[str, float] = {}
    use = Use(account)
    for key in by_quota(needs(account.spec).most):
        try:
            one = _room(account, use, key)
        except ClientError:
            continue
        found[key] = max(0.0, one.allowed - one.used)
    return found


def _room(account: Account, use: Use, key: str) -> _Room:
    """The account's own value, or the default where it has none."""
    client, row = account.client("service-quotas"), facts.quotas[key]
    asked = {"ServiceCode": row.service, "QuotaCode": row.quota_code}
    try:
        found = client.get_service_quota(**asked)
    except ClientError as error:
        if error.response["Error"]["Code"] != _NEVER_RAISED:
            raise
        found = client.get_aws_default_service_quota(**asked)
    return _Room(float(found["Quota"]["Value"]), use.of(key))


def _judged(account: Account, key: str, demands: Sequence[Demand], room: _Room) -> Answer:
    row, amount = facts.quotas[key], sum(demand.amount for demand in demands)
    names = ", ".join(dict.fromkeys(demand.name for demand in demands))
    text = (
        f"{row.description}: {amount:g} {row.unit} for {names}, "
        f"{room.used:g} used by others, {room.allowed:g} allowed"
    )
    check = f"quota {key}"
    if room.used + amount <= room.allowed:
        return Answer(check, State.READY, text)
    pending = _asked_for(account, key)
    if pending is not None:
        text += f"; a request for {pending:g} is pending"
    return Answer(check, State.SHORT, text, request(key, room.used + amount, account.spec.region))


def _asked_for(account: Account, key: str) -> float | None:
    """The largest value of a pending request; None where there is none, or requests cannot be read."""
    operation, row = "list_requested_service_quota_change_history_by_quota", facts.quotas[key]
    asked = {"ServiceCode": row.service, "QuotaCode": row.quota_code}
    try:
        rows = account.pages("service-quotas", operation, "RequestedQuotas", **asked)
        return max((one["DesiredValue"] for one in rows if one["Status"] in _PENDING), default=None)
    except ClientError:
        return None  # only an addition to the text
