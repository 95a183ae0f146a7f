"""All resources of one source, indexed, and what refers to what among them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from policies.coverage import WHOLE, Coverage
from policies.resource import Resource, UndeterminedError, is_unknown, told
from policies.settings import Settings

Answer = TypeVar("Answer")
# What other resources name a resource by, besides its id. EKS makes the security group of a cluster itself.
_NAMES = ("arn", "name", "selfLink", "bucket", "vpcConfig.clusterSecurityGroupId")


@dataclass(frozen=True)
class Sources:
    """The resources that a value names. Uncertain: it names some of these, and nobody knows yet which."""

    resources: tuple[Resource, ...]
    foreign: tuple[str, ...] = ()
    """What it names outside of the stack."""
    certain: bool = True


@dataclass
class _Uses:
    """Users by what they use (its `id()`); for whom that is not certain, and for all, why not."""

    certain: dict[int, list[Resource]] = field(default_factory=dict)
    uncertain: dict[int, str] = field(default_factory=dict)
    unknown: str = ""


class Stack:
    """The resources of a source, and the settings by which they are judged.

    Where `coverage` says that a source could not tell of a kind, whatever depends on there being none, or no
    other one, raises UndeterminedError: the rules need not know.
    """

    def __init__(
        self, resources: Iterable[Resource], settings: Settings | None = None, coverage: Coverage = WHOLE
    ) -> None:
        self.resources = tuple(resources)
        self.settings = settings or Settings()
        self.coverage = coverage
        self._by_kind: dict[str, list[Resource]] = {}
        for resource in self.resources:
            self._by_kind.setdefault(resource.kind, []).append(resource)
        self._names: dict[str, Mapping[str, Resource]] = {}
        self._uses: dict[tuple[str, str, str], _Uses] = {}
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._refusals: dict[tuple[Any, ...], Exception] = {}

    @cached_property
    def by_urn(self) -> Mapping[str, Resource]:
        """Every resource by its URN."""
        return {resource.urn: resource for resource in self.resources}

    def once(self, question: Callable[..., Answer], *words: str) -> Answer:
        """The answer to `question(stack, *words)`, or what it raised, however often it is asked.

        What a rule asks for every resource would be looked for among all of them each time.
        """
        key = (question, *words)
        if key not in self._answers and key not in self._refusals:
            try:
                self._answers[key] = question(self, *words)
            except Exception as error:
                self._refusals[key] = error
        if key in self._refusals:
            raise self._refusals[key].with_traceback(None)
        answer: Answer = self._answers[key]
        return answer

    def all(self, *kinds: str) -> list[Resource]:
        """The resources of these kinds, in the order of the source.

        Raises UndeterminedError where the source could not tell all of them.
        """
        for kind in kinds:
            self._needs(kind)
        return self.told(*kinds)

    def told(self, *kinds: str) -> list[Resource]:
        """Those of these kinds that the source told of, which need not be all."""
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

        None where nothing is set, or what is named is not in the stack. An unknown value is followed where
        the source says from which resource the property comes; else UndeterminedError is raised, as where the
        source could not tell of those that it may name.
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

    def sources(self, user: Resource, value: Any, property: str, *kinds: str) -> Sources:
        """The resources that a list of ids names, which is `value` in the top-level `property` of `user`.

        Raises UndeterminedError for unknown ids of which the source does not say where they come from.
        """
        values = value if not is_unknown(value) and isinstance(value, list) else [value]
        given = [one for one in values if not is_unknown(one) and one]
        found = [(one, self.referred(user, one, property, *kinds)) for one in given]
        known = [resource for _, resource in found if resource is not None]
        foreign = tuple(str(one) for one, resource in found if resource is None)
        unknown = [one for one in values if is_unknown(one)]
        if not unknown:
            return Sources(tuple(known), foreign)
        candidates = [one for one in self._candidates(user, property, kinds) if one not in known]
        if not candidates:
            raise UndeterminedError(_lacking(property, unknown[0]))
        whole = is_unknown(value) and len(candidates) > 1
        return Sources((*known, *candidates), foreign, not whole and len(candidates) == len(unknown))

    def users(self, used: Resource, kind: str, path: str) -> Iterator[Resource]:
        """The resources of a kind that name `used` at `path`, as one value or in a list.

        Raises UndeterminedError, after those that are known, where the value of another one is unknown and
        so is where it comes from, or where the source could not tell of others.
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
        """Who names which resources of the kind `used`."""
        uses = _Uses()
        for user in self.told(kind):
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
        """From which resources the values in a property come."""
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
    why = told(value) if is_unknown(value) else f"{property} is not known"
    return f"{why}, and from which resource it comes is not told"
