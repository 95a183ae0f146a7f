"""Differences between what a program states and what a resource has, by the rules of its provider.

A property that is left out keeps the value that the provider computed, or goes back to the default of the
provider. Where the state lacks a computed value, it is what the cloud fills in by the documentation. A value
that the resource has already is no difference, however it is written.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rehearsal.core.emulation.changes import Changes
from rehearsal.core.emulation.equality import alike
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at, join, within


@dataclass(frozen=True)
class PropertyDifference:
    """One changed path, such as `ingress[0].fromPort`."""

    path: str
    inner: tuple[str, ...] = ()
    """Paths without indices that change with it: in a block, or in an item of a set, which moves whole."""
    guessed: bool = False
    """The cloud computed the former value, and the rehearsal does not have it."""


@dataclass(frozen=True)
class StateComparison:
    """The rules of one type: `computed` and `sets` are paths without indices, `maps` top-level names."""

    changes: Changes
    computed: Container[str]
    sets: Container[str]
    defaults: Properties = field(default_factory=dict)
    maps: Container[str] = frozenset()
    complete: bool = True
    """Whether the outputs have what the cloud computes."""
    inputs: Properties = field(default_factory=dict)
    """Those that are compared, on which defaults may depend."""

    def of(self, old: Properties, new: Properties, state: Properties) -> list[PropertyDifference]:
        """The differences of the inputs `new` from the former inputs `old` and from the outputs `state`."""
        return list(replace(self, inputs=new)._mappings(old, new, state, "", ""))

    def _compare(self, old: Any, new: Any, state: Any, path: str, plain: str) -> Iterator[PropertyDifference]:
        if old is new or old == new or (new is None and plain in self.computed):
            return
        had, wanted = (self._default(plain, state) if value is None else value for value in (old, new))
        if old is None and self._fills(wanted, state, path, plain):
            return
        blocks = all(isinstance(one, Mapping | list) for one in (old, new))
        if not blocks and (self._stays(wanted, state, plain) or self._same(had, wanted, plain)):
            return
        if isinstance(had, Mapping) and isinstance(wanted, Mapping):
            yield from self._blocks(had, wanted, state, path, plain)
        elif isinstance(had, list) and isinstance(wanted, list):
            yield from (self._items if plain in self.sets else self._positions)(
                had, wanted, state, path, plain
            )
        else:
            guessed = not self.complete and had is None and state is None and plain in self.computed
            yield PropertyDifference(path, (*self._given(wanted, plain), *self._removed(had, plain)), guessed)

    def _fills(self, wanted: Any, state: Any, path: str, plain: str) -> bool:
        """Return whether a block that the state lacks has only values that the cloud fills in."""
        if state is not None or plain not in self.computed or not isinstance(wanted, Mapping):
            return False
        return not any(self._mappings({}, wanted, None, path, plain))

    def _mappings(
        self, old: Mapping[str, Any], new: Mapping[str, Any], state: Any, path: str, plain: str
    ) -> Iterator[PropertyDifference]:
        for name in [*old, *(name for name in new if name not in old)]:
            there = state.get(name) if isinstance(state, Mapping) else None
            yield from self._compare(old.get(name), new.get(name), there, join(path, name), join(plain, name))

    def _blocks(
        self, old: Mapping[str, Any], new: Mapping[str, Any], state: Any, path: str, plain: str
    ) -> Iterator[PropertyDifference]:
        found = self._mappings(old, new, state, path, plain)
        if plain not in self.sets:
            yield from found
            return
        both = (*self._given(new, plain), *self._removed(old, plain))
        yield from (replace(one, inner=(*one.inner, *both)) for one in found)

    def _positions(
        self, old: list[Any], new: list[Any], state: Any, path: str, plain: str
    ) -> Iterator[PropertyDifference]:
        there = state if isinstance(state, list) and len(state) == len(new) else []
        for index in range(max(len(old), len(new))):
            items = (_item(old, index), _item(new, index), _item(there, index))
            yield from self._item(*items, f"{path}[{index}]", plain)

    def _item(self, old: Any, new: Any, state: Any, path: str, plain: str) -> Iterator[PropertyDifference]:
        if old is None or new is None:
            yield PropertyDifference(path, (*self._given(new, plain), *self._removed(old, plain)))
        else:
            yield from self._compare(old, new, state, path, plain)

    def _items(
        self, old: list[Any], new: list[Any], state: Any, path: str, plain: str
    ) -> Iterator[PropertyDifference]:
        """Differences of two sets; items that are in one alone are compared in their order."""
        there = state if isinstance(state, list) else []
        left = list(enumerate(old))
        added = []
        for index, item in enumerate(new):
            same = next((one for one in left if self._equal(one[1], item, there, plain)), None)
            if same is None:
                added.append((index, item))
            else:
                left.remove(same)
        for number in range(max(len(left), len(added))):
            before = left[number][1] if number < len(left) else None
            after = added[number][1] if number < len(added) else None
            index = (added if number < len(added) else left)[number][0]
            both = (*self._given(after, plain), *self._removed(before, plain))
            found = list(self._item(before, after, None, f"{path}[{index}]", plain))
            yield from (replace(one, inner=(*one.inner, *both)) for one in found)

    def _equal(self, old: Any, new: Any, state: list[Any], plain: str) -> bool:
        if old == new:
            return True
        there = next((one for one in state if within(old, one)), None)
        return not any(self._compare(old, new, there, "item", plain))

    def _default(self, plain: str, state: Any) -> Any:
        """The value of a property that is left out, as far as it is known."""
        found = self.changes.defaults.get(plain)
        if found is None:
            found = at(self.defaults, plain)
        return self.changes.fill(plain, self.inputs) if found is None and state is None else found

    def _stays(self, wanted: Any, state: Any, plain: str) -> bool:
        """Return whether the resource is as wanted; blocks may have more than the program states."""
        if isinstance(wanted, Mapping) and isinstance(state, Mapping):
            return all(
                self._stays(value, state.get(name), join(plain, name)) for name, value in wanted.items()
            )
        if isinstance(wanted, list) and isinstance(state, list):
            if len(wanted) != len(state):
                return False
            if plain not in self.sets:
                return all(self._stays(*pair, plain) for pair in zip(wanted, state, strict=True))
            return all(any(self._stays(item, one, plain) for one in state) for item in wanted)
        return wanted is not None and state is not None and self._same(state, wanted, plain)

    def _same(self, old: Any, new: Any, plain: str) -> bool:
        if old == new:
            return True
        if UNKNOWN in (old, new):
            return False
        if old is None or new is None:
            return not self.changes.nulls and self._empty(new if old is None else old, plain)
        if isinstance(old, int | float) and isinstance(new, str):
            old, new = new, old
        if isinstance(old, str) and isinstance(new, int | float):  # one of the SDK, the other of the provider
            return old == (str(new).lower() if isinstance(new, bool) else str(new))
        return plain in self.changes.alike and alike(self.changes.alike[plain], old, new)

    def _empty(self, value: Any, plain: str) -> bool:
        """Return whether a value is the same as none to SDK 2 of Terraform's providers."""
        return value in ("", False, 0, []) or (value == {} and plain in self.maps)

    def _given(self, value: Any, plain: str) -> Iterator[str]:
        """The paths inside a block or the items of a list."""
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                for name, inside in item.items():
                    if inside is not None:
                        yield join(plain, name)
                        yield from self._given(inside, join(plain, name))

    def _removed(self, value: Any, plain: str) -> Iterator[str]:
        """The paths inside a block that ends; what the framework's blocks had in them does not matter."""
        if not self.changes.nulls:
            yield from (path for path in self._given(value, plain) if path not in self.computed)


def given_still(gave: Any, wanted: Any, computed: Container[str], plain: str = "") -> Any:
    """The values that a program `gave`, without those that it leaves out now and the provider keeps."""
    if isinstance(gave, Mapping):
        now = wanted if isinstance(wanted, Mapping) else {}
        return {
            name: given_still(value, now.get(name), computed, join(plain, name))
            for name, value in gave.items()
            if now.get(name) is not None or join(plain, name) not in computed
        }
    if isinstance(gave, list) and isinstance(wanted, list) and len(gave) == len(wanted):
        return [given_still(*pair, computed, plain) for pair in zip(gave, wanted, strict=True)]
    return gave


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
