"""Registration of resources that no program of the rehearsal made, so that programs can refer to them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.accounts import ACCOUNT
from rehearsal.aws import implicit
from rehearsal.aws.site import DEFAULT_REGION, PACKAGE
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.shape import identifiers
from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties, Record
from rehearsal.core.state import State

_VPC = "aws:ec2/vpc:Vpc"
_ARN = re.compile(r"arn:[a-z-]+:[a-z0-9-]+:(?P<region>[a-z0-9-]*):(?P<account>\d{12}):")


def seed(state: State, resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Register resources; returns the ids of the new ones.

    Each has its full `type` and `id`, and optionally `outputs`, `account` and `region` (by default those in
    its ARN, else those of the rehearsal), and `urn`, by which it can be deleted. They belong to no program,
    so none deletes them.
    """
    with state.transaction():
        return [one["id"] for one in resources if _insert(state, one)]


def _insert(state: State, one: Mapping[str, Any]) -> bool:
    token, key, given = str(one["type"]), str(one["id"]), dict(one.get("outputs") or {})
    row = TABLE.row(token)
    found = _ARN.match(str(given.get("arn") or key))
    account = str(one.get("account") or (found and found["account"]) or ACCOUNT)
    region = str(one.get("region") or (found and found["region"]) or DEFAULT_REGION)
    scope = f"{account}/{'global' if row.place == 'global' else region}"
    if state.get(PACKAGE, token, scope, key):
        return False
    values = {"account": account, "region": region, "id": key, "name": key, "path": "/"}
    outputs: Properties = {**row.defaults, "tagsAll": {}, "region": region, **given}
    outputs.setdefault("arn", key if found else expand(row.link, key, {**values, **outputs}))
    urn = str(one.get("urn") or "")
    record: Record = state.insert(
        package=PACKAGE, type=token, scope=scope, id=key, urn=urn, name="", inputs={}, outputs=outputs
    )
    names = {str(given["name"])} if given.get("name") else set()
    state.issue(record, {*identifiers(row, "arn", key, outputs), *names})
    if token == _VPC:
        implicit.make(state, record)
    return True
