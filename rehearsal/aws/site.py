"""Where a request of the AWS cloud takes place, and the functions a service may add to its types."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rehearsal.core.model import UNKNOWN, Call, Properties, RefusalError
from rehearsal.core.state import Record, State

PACKAGE = "aws"
# At this path a resource that the service made by itself refers to the one it belongs to.
OWNER = "__owner"


@dataclass(frozen=True)
class Site:
    """One request: state, account, region and scope of the resource it is about."""

    state: State
    account: str
    region: str
    scope: str
    call: Call
    preview: bool = False

    def find(self, value: object, *types: str) -> Record | None:
        """The resource of one of `types` (without `aws:`) that is known under `value` here, or None."""
        if not isinstance(value, str):
            return None
        wanted = {f"aws:{token}" for token in types}
        for record in self.state.issued(value):
            if record.type in wanted and self.sees(record):
                return record
        return None

    def sees(self, record: Record) -> bool:
        """Whether a resource is in this account and region, or global."""
        return record.package == PACKAGE and record.scope in (
            self.scope,
            self.global_scope,
            self.regional_scope,
        )

    @property
    def global_scope(self) -> str:
        """The scope of what has no region."""
        return f"{self.account}/global"

    @property
    def regional_scope(self) -> str:
        """The scope of this region."""
        return f"{self.account}/{self.region}"

    def all(self, token: str) -> Iterator[Record]:
        """The resources of a type (without `aws:`) in this region or global, oldest first."""
        found = [
            self.state.find(package=PACKAGE, type=f"aws:{token}", scope=scope)
            for scope in dict.fromkeys((self.scope, self.regional_scope, self.global_scope))
        ]
        return itertools.chain(*found)

    def others(self, token: str) -> Iterator[Record]:
        """Like `all`, without the resource of this request."""
        return (record for record in self.all(token) if record.urn != self.call.urn)

    def users(self, used: Record, token: str) -> Iterator[Record]:
        """The resources of a type (without `aws:`) that refer to `used`, without that of this request."""
        users = (reference.user for reference in self.state.users(used))
        return (one for one in users if one.type == f"aws:{token}" and one.urn != self.call.urn)

    def hidden(
        self,
        owner: Record,
        token: str,
        id: str,
        outputs: Properties,
        issued: set[str],
        *,
        name: str = "",
        uses: Mapping[str, Record] | None = None,
    ) -> Record:
        """Make a resource that the service creates by itself and deletes with its owner.

        While it exists, it keeps those that it `uses` (at a property each) from being deleted.
        """
        record = self.state.insert(
            package=PACKAGE,
            type=f"aws:{token}",
            scope=owner.scope,
            id=id,
            urn="",
            name=name,
            inputs={},
            outputs=outputs,
        )
        self.state.issue(record, issued)
        self.state.refer(record, {**(uses or {}), OWNER: owner})
        return record

    def drop_hidden(self, owner: Record) -> None:
        """Remove what `hidden` made for an owner, and for that in turn."""
        for reference in self.state.users(owner):
            if reference.path == OWNER:
                self.drop_hidden(reference.user)
                self.state.remove(reference.user)


@dataclass(frozen=True)
class Hooks:
    """What a row cannot say about a type.

    `outputs` adds computed outputs, given site, seed, inputs and outputs so far; `created` may make hidden
    resources or documents; `deleting` may refuse, and cleans up. What AWS refuses else is in the rule book.
    `volatile` outputs change with every update, to what `updated` says.
    """

    outputs: Callable[[Site, str, Properties, Properties], Properties] | None = None
    created: Callable[[Site, Record], None] | None = None
    updated: Callable[[Site, Record, Properties], Properties] | None = None
    deleting: Callable[[Site, Record], None] | None = None
    volatile: tuple[str, ...] = ()


def known(value: object) -> bool:
    """Whether a value is set and a preview knows it."""
    return value is not None and value is not UNKNOWN


def refuse(code: str, message: str, path: str, fix: str = "") -> RefusalError:
    """A refusal that names the property at fault."""
    return RefusalError(code, f"{message} (property {path})", fix)
