"""Site of a request (account or project, region) and hooks that a service adds to its types."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from rehearsal.core.model import Call, Properties, Record, RefusalError
from rehearsal.core.state import State

# Property path at which a resource made by a service refers to its owner.
OWNER = "__owner"


@dataclass(frozen=True)
class BaseSite:
    """One request: the state, the scope and the call of the resource it is about."""

    package: ClassVar[str]
    state: State
    scope: str
    """Scope in which ids are unique: an account and region, or a project."""
    call: Call
    preview: bool = False

    @property
    def scopes(self) -> tuple[str, ...]:
        """Scopes that are visible from here."""
        return (self.scope,)

    @property
    def template_values(self) -> Mapping[str, str]:
        """Values for templates besides properties: the account, the project and its number."""
        raise NotImplementedError

    @property
    def places(self) -> Properties:
        """Region, zone and location, where known."""
        raise NotImplementedError

    def find(self, value: object, *types: str) -> Record | None:
        """The resource of one of `types` (without the package) that is known under `value` here, or None.

        One whose id it is comes before one that only names it.
        """
        if not isinstance(value, str):
            return None
        wanted = {f"{self.package}:{token}" for token in types}
        found = (one for one in self.state.issued(value) if one.type in wanted and self.sees(one))
        return min(found, key=lambda one: one.id != value, default=None)

    def sees(self, record: Record) -> bool:
        """Return whether a program can refer to a resource from here."""
        return record.package == self.package and record.scope in self.scopes

    def reaches(self, record: Record) -> bool:
        """Return whether a request from here reaches a resource of another scope by its id."""
        return True

    def all(self, token: str) -> Iterator[Record]:
        """The resources of a type (without the package) that are visible from here, oldest first."""
        for scope in self.scopes:
            yield from self.state.find(package=self.package, type=f"{self.package}:{token}", scope=scope)

    def others(self, token: str) -> Iterator[Record]:
        """Like `all`, without the resource of this request."""
        return (record for record in self.all(token) if record.urn != self.call.urn)

    def users(self, used: Record, token: str) -> Iterator[Record]:
        """The resources of a type (without the package) that refer to `used`, except this request's."""
        users = (reference.user for reference in self.state.users(used))
        return (one for one in users if one.type == f"{self.package}:{token}" and one.urn != self.call.urn)

    def current(self, token: str) -> Record | None:
        """The resource of this request as it is before an update; None when it is being created."""
        return next((one for one in self.all(token) if one.urn == self.call.urn), None)

    def exists(self, value: str) -> bool:
        """Return whether any scope has a resource with this id, link or name."""
        return bool(self.state.issued(value))

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

        While it exists, it blocks the deletion of those that it `uses` (at a property each).
        """
        record = self.state.insert(
            package=self.package,
            type=f"{self.package}:{token}",
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

    def release(self, hidden: Record) -> None:
        """Detach a hidden resource, with its own hidden ones, from its owner; it must not use others."""
        self.state.refer(hidden, {})

    def drop_hidden(self, owner: Record) -> None:
        """Remove the hidden resources of an owner, recursively."""
        for reference in self.state.users(owner):
            if reference.path == OWNER:
                self.drop_hidden(reference.user)
                self.state.remove(reference.user)


S = TypeVar("S", bound=BaseSite)


@dataclass(frozen=True)
class Hooks(Generic[S]):
    """Behavior of a type that columns cannot describe. Refusals are in the book of rules.

    `outputs` adds computed outputs, given site, seed, inputs and outputs so far. `updated` returns changed
    outputs of an update, given the record and new inputs; also in a preview, where `volatile` outputs stay
    unknown. `created` and `changed` may make hidden resources or documents after a create or an update.
    `calls` calls another service before a `create`, `update` or `delete`, given the inputs before and
    after, and may refuse; it returns outputs, runs outside of a transaction and never in a preview. `unready`
    returns why a new resource is not ready yet, empty when it is; it is polled while others are created,
    outside of a transaction. `deleting` may refuse, and cleans up the state; `deleted` runs when nothing can
    be refused any more, and cleans up elsewhere.
    """

    outputs: Callable[[S, str, Properties, Properties], Properties] | None = None
    created: Callable[[S, Record], None] | None = None
    updated: Callable[[S, Record, Properties], Properties] | None = None
    changed: Callable[[S, Record], None] | None = None
    calls: Callable[[S, str, Properties | None, Properties], Properties] | None = None
    unready: Callable[[S, Record], str] | None = None
    deleting: Callable[[S, Record], None] | None = None
    deleted: Callable[[S, Record], None] | None = None
    volatile: tuple[str, ...] = ()


def refuse(code: str, message: str, path: str, fix: str = "") -> RefusalError:
    """A refusal that names the property at fault."""
    return RefusalError(code, f"{message} (property {path})" if path else message, fix)
