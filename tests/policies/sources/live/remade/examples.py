"""The failing parts of all recorded examples of AWS in one emulated account: one is quicker than sixty."""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from policies.resource import Resource
from policies.sources import state
from tests.policies.recording import recordings
from tests.policies.sources.live.remade.twins import Twins, twins

# Names that several examples have; of an example, each becomes its own.
_SHARED = re.compile(r"\b(train\b|example-checkpoints|(?:template|group|efa)-[0-9a-f]{7}|nodes\b(?=\"))")


@dataclass(frozen=True)
class World:
    """All examples in one account."""

    whole: Twins
    urns: Mapping[str, frozenset[str]]
    """By example."""

    def of(self, key: str) -> Twins:
        """One example alone, as if nothing of the others were there."""
        own = {(one.kind, one.id) for one in self.whole.state if one.urn in self.urns[key]}
        others = {(one.kind, one.id) for one in self.whole.state} - own
        reported = self.whole.account
        found = tuple(one for one in reported.found if (one.resource.kind, one.resource.id) not in others)
        return Twins(
            [one for one in self.whole.state if one.urn in self.urns[key]], replace(reported, found=found)
        )


def rows(key: str) -> list[Any]:
    """The resources of the failing part of an example, as its state has them."""
    return recordings.rows(key, "fail")


@functools.cache
def keys() -> tuple[str, ...]:
    """The examples in which everything is of AWS."""
    found = recordings.keys()
    return tuple(key for key in found if all(row["type"].startswith("aws:") for row in rows(key)))


@functools.cache
def world() -> World:
    """Made once for all tests of a process."""
    states = {key: _state(key, number) for number, key in enumerate(keys())}
    whole = [one for found in states.values() for one in found]
    assert len({(one.kind, one.id) for one in whole}) == len(whole), "two examples have the same name"
    urns = {key: frozenset(one.urn for one in found) for key, found in states.items()}
    return World(twins(whole), urns)


def _state(key: str, number: int) -> list[Resource]:
    text = json.dumps(recordings.export(key, "fail"))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "state.json"
        own = _SHARED.sub(lambda one: f"{one[0]}{number}", text)
        file.write_text(own.replace("urn:pulumi:fail::", f"urn:pulumi:{key.lower()}::"))
        return state.read(file)
