"""Responses in a comparable form: accepted or not, and the invalid fields."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORDS = (
    "Invalid value|Required value|Forbidden|Duplicate value|Unsupported value|Not found|Too long|Too many|"
    "Too few|field not declared|expected |duplicate entries"
)
_KEY = r"\[[^\]]*\]"
_ERROR = re.compile(rf"(?:^|(?<=[\[\s,]))\.?([a-z]\w*(?:\.[\w/-]+|{_KEY})*): (?={_WORDS})")
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_MISTYPED = re.compile(r"Go struct field (\w+\.\S+) of type")
# `[0]`, and `[name="main"]` or `[="Deny"]`, by which a server-side apply identifies items of a list.
_PLACE = re.compile(r"\[(?:\d+|[a-zA-Z]*=[^\]]*)\]")
# What the API server fills from a field that a program writes.
_COPIES = {"spec.clusterIPs": "spec.clusterIP", "spec.persistentvolumesource": "spec"}


@dataclass(frozen=True)
class Verdict:
    """One answer. `fields` is empty where the fields at fault are not named; `whole` when all of them are.

    `missing` are those that are at fault because they are not there: what should be in them is, too.
    """

    accepted: bool
    reason: str = ""
    fields: frozenset[str] = frozenset()
    whole: bool = False
    text: str = ""
    missing: frozenset[str] = frozenset()

    def __str__(self) -> str:
        named = ", ".join(sorted(self.fields)) or "no field"
        return "accepted" if self.accepted else f"{self.reason} ({named}): {self.text}"


ACCEPTED = Verdict(True)


def named(text: str) -> frozenset[str]:
    """The fields that a message names as at fault."""
    return fields([*_ERROR.findall(text), *_UNKNOWN.findall(text), *map(_decoded, _MISTYPED.findall(text))])


def _decoded(path: str) -> str:
    """A field of a Go struct; the metadata of a custom object is decoded by itself."""
    struct, _, rest = path.partition(".")
    return f"metadata.{rest}" if struct == "ObjectMeta" and "metadata." not in rest else rest


def fields(paths: Iterable[str]) -> frozenset[str]:
    """Paths in one notation, without places in lists: `spec.hard[pods]` is `spec.hard.pods`."""
    found = set()
    for path in paths:
        if path == "<nil>":  # an error about the whole object
            continue
        plain = re.sub(r"\[\"?([^\]]*?)\"?\]", r".\1", _PLACE.sub("", path)).lstrip(".")
        # Where the last version of the API had it.
        plain = plain.replace("spec.validation.", "spec.versions.schema.")
        plain = re.sub(r"\b[A-Z]\w*\.", "", plain)  # a struct that is embedded in Go has no name in JSON
        found.add(_COPIES.get(plain, plain))
    return frozenset(found)


def agree(ours: Verdict, theirs: Verdict) -> bool:
    """Whether the emulation's response matches that of the API server."""
    if ours.accepted or theirs.accepted:
        return ours.accepted == theirs.accepted
    if not theirs.fields:
        return ours.reason == theirs.reason
    about = [
        any(
            _inside(path, their) or (path in ours.missing and _inside(their, path)) for their in theirs.fields
        )
        for path in ours.fields
    ]
    return bool(about) and (all if theirs.whole else any)(about)


def _inside(path: str, other: str) -> bool:
    return f"{path}.".startswith(f"{other}.")
