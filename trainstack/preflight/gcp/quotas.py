"""The check of quotas: the values of the project, their use, and the needs of the stack at its largest."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infra.catalog.demand import Demand, by_quota
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import ServiceQuota
from infra.catalog.gcp.quotas import dimensions, request
from infra.clouds.gcp.api import ApiRequestError
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.needs import needs
from trainstack.preflight.gcp.project import Project, Row, unanswered
from trainstack.preflight.gcp.use import Use

UNLIMITED = -1
"""googleapis/googleapis google/api/cloudquotas/v1/resources.proto, QuotaConfig.preferred_value."""


@dataclass(frozen=True)
class _Room:
    allowed: float
    used: float


def room(project: Project) -> Iterator[Answer]:
    """Each quota allows the use of others plus the needs of the stack with every pool at its largest."""
    use = Use(project)
    for key, demands in by_quota(_needs(project)).items():
        check = f"quota {key}"
        try:
            found = _room(project, use, key)
        except ApiRequestError as error:
            yield unanswered(check, error, project)
            continue
        if found is None:
            text = f"Cloud Quotas reports no value of {facts.quotas[key].quota_id} for {project.spec.region}"
            yield Answer(check, State.UNKNOWN, text, "Check the quotas of the project in the console.")
        else:
            yield _judged(project, key, demands, found)


def left(project: Project) -> Mapping[str, float]:
    """The rest that others leave of each quota that the stack needs; without unreadable quotas."""
    found: dict[str, float] = {}
    use = Use(project)
    for key in by_quota(_needs(project)):
        try:
            one = _room(project, use, key)
        except ApiRequestError:
            continue
        if one is not None and one.allowed != math.inf:
            found[key] = max(0.0, one.allowed - one.used)
    return found


def _needs(project: Project) -> Sequence[Demand]:
    """The needs of the stack at its largest, and of those beside it for quotas that they share."""
    region = project.spec.region
    return [
        *needs(project.spec).most,
        *(
            one
            for spec in project.beside
            if getattr(spec.on, "project", "") == project.on.project
            for one in needs(spec).most
            if spec.region == region or not facts.quotas[one.key].regional
        ),
    ]


def _room(project: Project, use: Use, key: str) -> _Room | None:
    """None where the quota has no value for the region. Raises ApiRequestError."""
    row = facts.quotas[key]
    name = f"{project.path}/locations/global/services/{row.service}/quotaInfos/{row.quota_id}"
    method = "cloudquotas.projects.locations.services.quotaInfos.get"
    value = _value(project, row, project.asked(method, name=name))
    return None if value is None else _Room(value, use.of(key))


def _value(project: Project, row: ServiceQuota, info: Row) -> float | None:
    """The value for the region of the stack: rows come from the more specific to the less.

    A row without dimensions is of all values that have no row of their own, so of GPU families as well.
    Source: googleapis/googleapis google/api/cloudquotas/v1/resources.proto, QuotaInfo, DimensionsInfo.
    """
    wanted = dimensions(row, project.spec.region)
    for one in info.get("dimensionsInfos") or ():
        places = one.get("applicableLocations") or ("global",)
        named = (one.get("dimensions") or {}).items()
        if not ({project.spec.region, "global"} & {*places} and named <= wanted.items()):
            continue
        if "details" not in one:
            return None
        # JSON of protocol buffers leaves out a value that is 0.
        value = float(one["details"].get("value", 0))
        return math.inf if value == UNLIMITED else value
    return None


def _judged(project: Project, key: str, demands: Sequence[Demand], found: _Room) -> Answer:
    row, amount = facts.quotas[key], sum(demand.amount for demand in demands)
    names = ", ".join(dict.fromkeys(demand.name for demand in demands))
    allowed = "any number" if found.allowed == math.inf else f"{found.allowed:g}"
    text = (
        f"{row.description}: {amount:g} {row.unit} for {names}, "
        f"{found.used:g} used by others, {allowed} allowed"
    )
    check = f"quota {key}"
    if found.used + amount <= found.allowed:
        return Answer(check, State.READY, text)
    pending = _asked_for(project, row)
    if pending is not None:
        text += f"; a request for {pending:g} is pending"
    more = request(key, found.used + amount, project.on.project, project.spec.region)
    return Answer(check, State.SHORT, text, more)


def _asked_for(project: Project, row: ServiceQuota) -> float | None:
    """The largest value of a pending request; None where there is none."""
    method = "cloudquotas.projects.locations.quotaPreferences.list"
    asked = {"parent": f"{project.path}/locations/global", "filter": "reconciling=true"}
    try:
        rows = [
            float(one["quotaConfig"]["preferredValue"])
            for one in project.items(method, "quotaPreferences", **asked)
            if one.get("reconciling")
            and one.get("quotaId") == row.quota_id
            and one.get("dimensions", {}) == dimensions(row, project.spec.region)
        ]
    except (ApiRequestError, KeyError):
        return None  # only an addition to the text
    return max(rows, default=None)
