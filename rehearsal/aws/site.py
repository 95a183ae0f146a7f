"""Account and region of a request to the emulated AWS."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rehearsal.accounts import ACCOUNT
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation import site
from rehearsal.core.emulation.functions import absent
from rehearsal.core.model import Call, Properties, Record, RefusalError
from rehearsal.core.properties import decoded
from rehearsal.core.state import State

PACKAGE = "aws"
DEFAULT_REGION = "us-east-1"
MISSING = ("ResourceNotFoundException", "{value} does not exist")
SEEDED = "Register resources that the account has already with `trainstack rehearse seed FILE`."


@dataclass(frozen=True, kw_only=True)
class Site(site.BaseSite):
    """One request: account, region and scope of the resource it is about."""

    package: ClassVar[str] = PACKAGE
    account: str
    region: str

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scope of the resource, this region, and resources without a region."""
        return tuple(dict.fromkeys((self.scope, f"{self.account}/{self.region}", f"{self.account}/global")))

    @property
    def template_values(self) -> Mapping[str, str]:
        """See `core.emulation.site`."""
        return {"account": self.account}

    @property
    def places(self) -> Properties:
        """See `core.emulation.site`."""
        return {"region": self.region}

    def reaches(self, record: Record) -> bool:
        """Ids of some types are unique in all regions of an account."""
        return TABLE.row(record.type).everywhere and record.scope.startswith(f"{self.account}/")

    def known_as(self, token: str, value: object) -> Record:
        """The resource of a type under an id, name or ARN. Raises RefusalError without one."""
        for record in self.all(token):
            if value in (record.id, record.name, record.outputs.get("arn"), record.outputs.get("name")):
                return record
        kind = token.rpartition(":")[2]
        refusal = absent(TABLE, token, value, (MISSING[0], f"no {kind} matches {{value}}."))
        raise RefusalError(refusal.code, refusal.message, f"{refusal.fix} {SEEDED}")


def site_of(state: State, call: Call, given: Properties, *, preview: bool = False) -> Site:
    """The site of a request with the properties `given`."""
    config = call.instance.config
    account, region = account_of(config), given.get("region")
    if not isinstance(region, str):
        region = str(config.get("region") or DEFAULT_REGION)
    place = "global" if TABLE.row(call.type).place == "global" else region
    return Site(state, f"{account}/{place}", call, preview, account=account, region=region)


def account_of(config: Mapping[str, Any]) -> str:
    """The account of a provider: that of its role, else the one that it demands.

    A rehearsal has no credentials, so those that a provider would accept (`allowedAccountIds`) are assumed.
    """
    roles = decoded(config.get("assumeRoles"))
    if isinstance(roles, list) and roles and isinstance(roles[-1], dict):
        role = roles[-1].get("roleArn") or roles[-1].get("role_arn")  # a dict literal keeps Python's spelling
        match = re.match(r"arn:[a-z-]+:iam::(\d{12}):", str(role))
        if match:
            return match.group(1)
    allowed = decoded(config.get("allowedAccountIds"))
    return str(allowed[0]) if isinstance(allowed, list) and allowed else ACCOUNT
