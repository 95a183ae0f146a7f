"""What an account holds that no program of the rehearsal made: once it is known, programs may refer to it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.aws.site import ACCOUNT, DEFAULT_REGION, PACKAGE
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.shape import identifiers
from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties, Record
from rehearsal.core.state import State

_ARN = re.compile(r"arn:[a-z-]+:[a-z0-9-]+:(?P<region>[a-z0-9-]*):(?P<account>\d{12}):")


def seed(state: State, resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Make resources known; returns the ids of those that were not.

    Each has its full `type`, its `id`, and what else is known: `outputs`, `account` and `region` (else those
    in its ARN, else those of the rehearsal). They belong to no program: none deletes them.
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
    words = {"account": account, "region": region, "id": key, "name": key, "path": "/"}
    outputs: Properties = {**row.defaults, "tagsAll": {}, "region": region, **given}
    outputs.setdefault("arn", key if found else expand(row.link, key, {**words, **outputs}))
    record: Record = state.insert(
        package=PACKAGE, type=token, scope=scope, id=key, urn="", name="", inputs={}, outputs=outputs
    )
    names = {str(given["name"])} if given.get("name") else set()
    state.issue(record, {*identifiers(row, "arn", key, outputs), *names})
    return True
