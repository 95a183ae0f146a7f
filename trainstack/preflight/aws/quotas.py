"""The checks of quotas: the values of the account, their use, and the needs of the stack at its largest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from botocore.exceptions import ClientError

from infra.catalog.aws.quotas import request, row_of
from infra.catalog.demand import Demand, by_quota
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account, unanswered
from trainstack.preflight.aws.job_use import JobUse
from trainstack.preflight.aws.needs import Needs, needs
from trainstack.preflight.aws.use import Use

_NEVER_RAISED = "NoSuchResourceException"
_PENDING = ("PENDING", "CASE_OPENED")
_JOBS = "sagemaker"
_OF_ONE_CLUSTER = ("eks_node_groups",)
# SageMaker has 2,000 quotas and more, and the requests for their pages are throttled.
_LONG_PAGES = {"PageSize": 100}


@dataclass(frozen=True)
class _Limit:
    """The value of a quota in the account, and its code."""

    value: float
    code: str


class _Limits:
    """The quotas of an account; those without a known code by their name, from lists that are read once."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._lists: dict[str, Mapping[str, _Limit]] = {}

    def of(self, key: str) -> _Limit | None:
        """The account's own value, or the default where it has none; None: it lists no such quota."""
        row = row_of(key)
        if row.quota_code is None:
            return self._by_name(row.service).get(row.description)
        client = self._account.client("service-quotas")
        asked = {"ServiceCode": row.service, "QuotaCode": row.quota_code}
        try:
            found = client.get_service_quota(**asked)
        except ClientError as error:
            if error.response["Error"]["Code"] != _NEVER_RAISED:
                raise
            found = client.get_aws_default_service_quota(**asked)
        return _Limit(float(found["Quota"]["Value"]), row.quota_code)

    def _by_name(self, service: str) -> Mapping[str, _Limit]:
        if service not in self._lists:
            self._lists[service] = {
                row["QuotaName"]: _Limit(float(row["Value"]), row.get("QuotaCode", ""))
                for operation in ("list_aws_default_service_quotas", "list_service_quotas")
                for row in self._account.pages(
                    "service-quotas", operation, "Quotas", ServiceCode=service, PaginationConfig=_LONG_PAGES
                )
            }
        return self._lists[service]


def room(account: Account) -> Iterator[Answer]:
    """Each quota allows the use of others plus the needs of the stack with every pool at its largest."""
    yield from _answers(account, "quota", jobs=False)


def room_of_jobs(account: Account) -> Iterator[Answer]:
    """The same for the quotas of SageMaker, of which many begin with 0: domain, notebooks, jobs, the gate.

    Above a quota, CreateTrainingJob fails with ResourceLimitExceeded.
    """
    yield from _answers(account, "job-quota", jobs=True)


def enough(account: Account) -> Iterator[Answer]:
    """The account's own limits allow a deployment with its validation, whatever others use.

    For `up`: it creates for minutes before the gate is refused. Limits that cannot be read do not stop it.
    """
    limits = _Limits(account)
    for key, demands in by_quota(_needs(account).now).items():
        try:
            limit = limits.of(key)
        except ClientError:
            continue
        if limit is not None and limit.value < sum(demand.amount for demand in demands):
            yield _judged(account, f"quota {key}", demands, limit, 0.0)


def left(account: Account) -> Mapping[str, float]:
    """The rest that others leave of each quota that the stack needs; without unreadable quotas."""
    found: dict[str, float] = {}
    limits, use, use_of_jobs = _Limits(account), Use(account), JobUse(account)
    for key in by_quota(_needs(account).most):
        try:
            limit = limits.of(key)
            if limit is not None:
                found[key] = max(0.0, limit.value - _used(key, use, use_of_jobs))
        except ClientError:
            continue
    return found


def _needs(account: Account) -> Needs:
    """The needs of the stack, and of those beside it for quotas that they share."""
    own, others = needs(account.spec), [needs(spec) for spec in account.beside]

    def shared(rows: Sequence[Demand]) -> Iterator[Demand]:
        return (one for one in rows if one.key not in _OF_ONE_CLUSTER and not row_of(one.key).each)

    now = (*own.now, *(one for other in others for one in shared(other.now)))
    return Needs(now, (*own.most, *(one for other in others for one in shared(other.most))))


def _used(key: str, use: Use, use_of_jobs: JobUse) -> float:
    row = row_of(key)
    if row.each:
        return 0.0
    return use_of_jobs.of(key) if row.service == _JOBS else use.of(key)


def _answers(account: Account, check: str, *, jobs: bool) -> Iterator[Answer]:
    limits, use, use_of_jobs = _Limits(account), Use(account), JobUse(account)
    for key, demands in by_quota(_needs(account).most).items():
        if (row_of(key).service == _JOBS) is not jobs:
            continue
        try:
            limit = limits.of(key)
            used = _used(key, use, use_of_jobs) if limit else 0.0
            yield _judged(account, f"{check} {key}", demands, limit, used)
        except ClientError as error:
            yield unanswered(f"{check} {key}", error)


def _judged(
    account: Account, check: str, demands: Sequence[Demand], limit: _Limit | None, used: float
) -> Answer:
    row, amount = row_of(demands[0].key), sum(demand.amount for demand in demands)
    names = ", ".join(dict.fromkeys(demand.name for demand in demands))
    wanted = f"{row.description}: {amount:g} {row.unit} for {names}"
    if limit is None:
        text = f"{wanted}; the account lists no quota of this name"
        fix = f"Look for it in Service Quotas, service {row.service}; a type may be absent from the region."
        return Answer(check, State.UNKNOWN, text, fix)
    text = f"{wanted}, {used:g} used by others, {limit.value:g} allowed"
    if used + amount <= limit.value:
        return Answer(check, State.READY, text)
    pending = _asked_for(account, row.service, limit.code)
    if pending is not None:
        text += f"; a request for {pending:g} is pending"
    fix = request(row.key, used + amount, account.spec.region, limit.code)
    return Answer(check, State.SHORT, text, fix)


def _asked_for(account: Account, service: str, code: str) -> float | None:
    """The largest value of a pending request; None where there is none, or requests cannot be read."""
    operation = "list_requested_service_quota_change_history_by_quota"
    asked = {"ServiceCode": service, "QuotaCode": code}
    try:
        rows = account.pages("service-quotas", operation, "RequestedQuotas", **asked)
        return max((one["DesiredValue"] for one in rows if one["Status"] in _PENDING), default=None)
    except ClientError:
        return None  # only an addition to the text
