"""Index of all resources of a source and of the references between them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from policies.coverage import WHOLE, Coverage
from policies.resource import Resource, UndeterminedError, is_unknown, unknown_reason
from policies.settings import RuleSettings

Result = TypeVar("Result")
# Properties by which other resources refer to one, besides its id. EKS creates the group of a cluster.
_NAMES = ("arn", "name", "selfLink", "bucket", "vpcConfig.clusterSecurityGroupId")


@dataclass(frozen=True)
class ReferencedResources:
    """Resources that a value refers to. If not `certain`: some of these, not yet known which."""

    resources: tuple[Resource, ...]
    foreign: tuple[str, ...] = ()
    """References to resources outside of the stack."""
    certain: bool = True


@dataclass
class _Uses:
    """Users by used resource (its `id()`), and the reasons for uncertainty, by used resource and for all."""

    certain: dict[int, list[Resource]] = field(default_factory=dict)
    uncertain: dict[int, str] = field(default_factory=dict)
    unknown: str = ""


class Stack:
    """The resources of a source, and the settings by which they are judged.

    If `coverage` lists a kind as not fully read, a query that depends on its absence or completeness raises
    UndeterminedError, so rules need no check of their own.
    """

    def __init__(
        self, resources: Iterable[Resource], settings: RuleSettings | None = None, coverage: Coverage = WHOLE
    ) -> None:
        self.resources = tuple(resources)
        self.settings = settings or RuleSettings()
        self.coverage = coverage
        self._by_kind: dict[str, list[Resource]] = {}
        for resource in self.resources:
            self._by_kind.setdefault(resource.kind, []).append(resource)
        self._names: dict[str, Mapping[str, Resource]] = {}
        self._uses: dict[tuple[str, str, str], _Uses] = {}
        self._results: dict[tuple[Any, ...], Any] = {}
        self._errors: dict[tuple[Any, ...], Exception] = {}

    @cached_property
    def by_urn(self) -> Mapping[str, Resource]:
        """Every resource by its URN."""
        return {resource.urn: resource for resource in self.resources}

    def once(self, function: Callable[..., Result], *arguments: str) -> Result:
        """Cache the result of `function(stack, *arguments)`, or its error.

        A rule that calls it for every resource would otherwise search all of them each time.
        """
        key = (function, *arguments)
        if key not in self._results and key not in self._errors:
            try:
                self._results[key] = function(self, *arguments)
            except Exception as error:
                self._errors[key] = error
        if key in self._errors:
            raise self._errors[key].with_traceback(None)
        result: Result = self._results[key]
        return result

    def all(self, *kinds: str) -> list[Resource]:
        """The resources of these kinds, in the order of the source.

        Raises UndeterminedError if the source could not read all of them.
        """
        for kind in kinds:
            self._needs(kind)
        return self.reported(*kinds)

    def reported(self, *kinds: str) -> list[Resource]:
        """The resources of these kinds that the source reports; may be incomplete."""
        return [resource for kind in kinds for resource in self._by_kind.get(kind, ())]

    def _needs(self, kind: str, of: str | None = None) -> None:
        why = self.coverage.gap(kind, of)
        if why:
            raise UndeterminedError(why)

    def target(self, user: Resource, path: str, *kinds: str) -> Resource | None:
        """The resource that `user` refers to at a path such as `launchTemplate.id`; see `referred`."""
        return self.referred(user, user.raw(path), path.split(".", maxsplit=1)[0], *kinds)

    def referred(self, user: Resource, value: Any, property: str, *kinds: str) -> Resource | None:
        """The resource of one of `kinds` that a value names by id, ARN or name, in `property` of `user`.

        None if it is unset, or refers outside of the stack. An unknown value is resolved if the source has
        the reference of the property. Raises UndeterminedError otherwise, and if candidates were not read.
        """
        if is_unknown(value):
            candidates = self._candidates(user, property, kinds)
            if len(candidates) != 1:
                raise UndeterminedError(_lacking(property, value))
            return candidates[0]
        if not isinstance(value, str) or not value:
            return None
        found = next((named[value] for named in map(self._named, kinds) if value in named), None)
        if found is None:
            for kind in kinds:
                self._needs(kind)
        return found

    def sources(self, user: Resource, value: Any, property: str, *kinds: str) -> ReferencedResources:
        """The resources that a list of ids names, which is `value` in the top-level `property` of `user`.

        Raises UndeterminedError for unknown ids without a reference in the source.
        """
        values = value if not is_unknown(value) and isinstance(value, list) else [value]
        given = [one for one in values if not is_unknown(one) and one]
        found = [(one, self.referred(user, one, property, *kinds)) for one in given]
        known = [resource for _, resource in found if resource is not None]
        foreign = tuple(str(one) for one, resource in found if resource is None)
        unknown = [one for one in values if is_unknown(one)]
        if not unknown:
            return ReferencedResources(tuple(known), foreign)
        candidates = [one for one in self._candidates(user, property, kinds) if one not in known]
        if not candidates:
            raise UndeterminedError(_lacking(property, unknown[0]))
        whole = is_unknown(value) and len(candidates) > 1
        return ReferencedResources(
            (*known, *candidates), foreign, not whole and len(candidates) == len(unknown)
        )

    def users(self, used: Resource, kind: str, path: str) -> Iterator[Resource]:
        """The resources of a kind that refer to `used` at `path`, as one value or in a list.

        Raises UndeterminedError, after yielding the known users, if another value is unknown and has no
        reference, or if the source could not read all users.
        """
        key = (used.kind, kind, path)
        if key not in self._uses:
            self._uses[key] = self._used(*key)
        uses = self._uses[key]
        yield from uses.certain.get(id(used), ())
        lacking = uses.uncertain.get(id(used)) or uses.unknown
        if lacking:
            raise UndeterminedError(lacking)
        self._needs(kind, "" if is_unknown(used.id) else str(used.id))

    def _used(self, used: str, kind: str, path: str) -> "_Uses":
        uses = _Uses()
        for user in self.reported(kind):
            value = user.raw(path)
            if value is None:
                continue
            try:
                found = self.sources(user, value, path.split(".", maxsplit=1)[0], used)
            except UndeterminedError as error:
                uses.unknown = uses.unknown or str(error)
                continue
            for resource in found.resources:
                if found.certain:
                    uses.certain.setdefault(id(resource), []).append(user)
                else:
                    uses.uncertain.setdefault(id(resource), _lacking(path, value))
        return uses

    def _candidates(self, user: Resource, property: str, kinds: tuple[str, ...]) -> list[Resource]:
        known = [self.by_urn[urn] for urn in user.references.get(property, ()) if urn in self.by_urn]
        return [resource for resource in known if resource.kind in kinds]

    def _named(self, kind: str) -> Mapping[str, Resource]:
        if kind not in self._names:
            names: dict[str, Resource] = {}
            for resource in self._by_kind.get(kind, ()):
                for value in (resource.id, *map(resource.raw, _NAMES)):
                    if not is_unknown(value) and isinstance(value, str) and value:
                        names.setdefault(value, resource)
            self._names[kind] = names
        return self._names[kind]


def _lacking(property: str, value: Any) -> str:
    why = unknown_reason(value) if is_unknown(value) else f"{property} is not known"
    return f"{why}, and the source has no reference for it"
