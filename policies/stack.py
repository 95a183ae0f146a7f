"""All resources of one source, indexed, and what refers to what among them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown
from policies.settings import Settings

# What other resources name a resource by, besides its id.
_NAMES = ("arn", "name", "selfLink", "bucket")


class Stack:
    """The resources of a source, and the settings by which they are judged."""

    def __init__(self, resources: Iterable[Resource], settings: Settings | None = None) -> None:
        self.resources = tuple(resources)
        self.settings = settings or Settings()
        self._by_kind: dict[str, list[Resource]] = {}
        for resource in self.resources:
            self._by_kind.setdefault(resource.kind, []).append(resource)
        self._names: dict[str, Mapping[str, Resource]] = {}

    @cached_property
    def by_urn(self) -> Mapping[str, Resource]:
        """Every resource by its URN."""
        return {resource.urn: resource for resource in self.resources}

    def all(self, *kinds: str) -> list[Resource]:
        """The resources of these kinds, in the order of the source."""
        return [resource for kind in kinds for resource in self._by_kind.get(kind, ())]

    def referred(self, user: Resource, value: Any, property: str, *kinds: str) -> Resource | None:
        """The resource of one of `kinds` that `value` names: an id, an ARN or a name in `property` of `user`.

        None where the value is not set, or names something outside of the stack. An unknown value is followed
        where the source says from which resource the property comes; else UndeterminedError is raised.
        """
        if is_unknown(value):
            return self._source(user, property, value, kinds)
        if not isinstance(value, str) or not value:
            return None
        return next((named[value] for named in map(self._named, kinds) if value in named), None)

    def users(self, used: Resource, kind: str, property: str) -> Iterator[Resource]:
        """The resources of a kind whose `property` names `used`; `a.b` reads below `a`.

        Raises UndeterminedError where the property of one of them is unknown.
        """
        top = property.split(".", maxsplit=1)[0]
        for user in self.all(kind):
            for value in _values(user, property):
                if self.referred(user, value, top, used.kind) is used:
                    yield user
                    break

    def _source(self, user: Resource, property: str, value: Any, kinds: tuple[str, ...]) -> Resource | None:
        """The one resource from which an unknown value can come."""
        known = [self.by_urn[urn] for urn in user.references.get(property, ()) if urn in self.by_urn]
        candidates = [resource for resource in known if resource.kind in kinds]
        if len(candidates) != 1:
            raise UndeterminedError(f"{property} of {user.name}: {value!r}")
        return candidates[0]

    def _named(self, kind: str) -> Mapping[str, Resource]:
        if kind not in self._names:
            names: dict[str, Resource] = {}
            for resource in self._by_kind.get(kind, ()):
                for value in (resource.id, *_known(resource, _NAMES)):
                    if not is_unknown(value) and isinstance(value, str) and value:
                        names.setdefault(value, resource)
            self._names[kind] = names
        return self._names[kind]


def _known(resource: Resource, names: Iterable[str]) -> Iterator[Any]:
    for name in names:
        try:
            yield resource.props.get(name)
        except UndeterminedError:
            continue


def _values(resource: Resource, property: str) -> Iterator[Any]:
    """The value of a property, or each of its values where it is a list; also if it is unknown."""
    raw: Any = resource.props
    for part in property.split("."):
        if is_unknown(raw) or not isinstance(raw, dict):
            break
        raw = raw.raw().get(part) if hasattr(raw, "raw") else raw.get(part)
    if is_unknown(raw) or not isinstance(raw, list):
        yield raw
    else:
        yield from raw
