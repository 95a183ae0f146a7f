"""Schemas of the Google provider as data, from its source: SDK 2 and the plugin framework in one form."""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.engine.golang import TOOLS, go
from tools.value_equality import default_of, kind_of

_FOLDERS = tuple(f"google-beta/{one}" for one in ("services", "verify", "tpgresource", "tpgiamresource"))
_AWS_FOLDERS = (":(glob)internal/**/*.go", ":(glob)names/*.go")
DECREASES = (
    "compute.IsDiskShrinkage",
    "compute.IsShrinkageIpCidr",
    "container.isBeenEnabled",
    "storage.isPolicyLocked",
)
"""Functions on whose condition a property replaces where a size, a range of addresses or a switch
decreases."""
_REPLACES = re.compile(r"RequiresReplace(IfConfigured)?$")
_MAY_REPLACE = re.compile(r"(RequiresReplace|ForceNew|ReplaceIf)\w*$")


@dataclass(frozen=True)
class Attribute:
    """One property or block."""

    given: bool
    """Whether a program may give it."""
    computed: bool
    replaces: bool
    required: bool = False
    may: bool = False
    """Whether it replaces the resource on a condition."""
    lower: bool = False
    """Whether it replaces the resource where it decreases."""
    is_set: bool = False
    default: Any = None
    alike: str = ""
    """Its kind of equality."""
    unknown: str = ""
    """A function that compares its values and has no kind."""
    inner: Mapping[str, "Attribute"] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """One resource type."""

    attributes: Mapping[str, Attribute]
    nulls: bool = False
    """Whether an empty value differs from one that is left out."""
    may: Sequence[str] = ()
    """Paths that a function replaces on a condition."""
    lower: Sequence[str] = ()
    """Paths that a function replaces where the value decreases."""


def of_source(schema: Mapping[str, Any]) -> Source:
    """A type from its schema in the source."""
    lower = []
    for condition in (schema.get("CustomizeDiff") or {}).get("arguments") or ():
        arguments = condition.get("arguments") if isinstance(condition, dict) else None
        function = arguments[1] if arguments and len(arguments) > 1 else None
        if isinstance(function, dict) and function.get("func") in DECREASES:
            lower += [arguments[0]] if arguments else []
    may = [one for one in schema.get("MayReplace") or () if isinstance(one, str)]
    return Source(attributes(schema), "Attributes" in schema, may, lower)


def revision(checkout: Path) -> tuple[str, str]:
    """Commit and date of a checkout."""
    line = ["git", "-C", str(checkout), "log", "-1", "--format=%H %cs"]
    commit, date = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()
    return commit, date


def unpack(checkout: Path, folders: Iterable[str], into: Path) -> None:
    """Write folders of a git folder, which may have no work tree, into another folder."""
    into.mkdir(parents=True, exist_ok=True)
    archive = ["git", "-C", str(checkout), "archive", "HEAD", *folders]
    packed = subprocess.run(archive, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", str(into)], input=packed, check=True)


def all_types(checkout: Path, types: Iterable[str] = (), *, package: str = "gcp") -> dict[str, Any]:
    """The provider's schema of each type, or of `types`, by the provider's name."""
    folders, root = (_FOLDERS, "google-beta") if package == "gcp" else (_AWS_FOLDERS, "internal")
    with tempfile.TemporaryDirectory() as copy:
        unpack(checkout, folders, Path(copy))
        text = go(TOOLS / "terraform-provider", "run", ".", f"{copy}/{root}", *types)
    found: dict[str, Any] = json.loads(text)
    return found


def attributes(source: Mapping[str, Any]) -> dict[str, Attribute]:
    """Every property of a resource by the provider's name."""
    if "Attributes" in source or "Blocks" in source:
        found = {**(source.get("Attributes") or {}), **(source.get("Blocks") or {})}
        return {
            name: _of_framework(node)
            for name, node in found.items()
            if isinstance(node, dict) and "$" in node
        }
    nodes = source.get("Schema")
    if not isinstance(nodes, dict):
        return {}
    return {name: _of_sdk(node) for name, node in nodes.items() if isinstance(node, dict) and "Type" in node}


def _of_sdk(node: Mapping[str, Any]) -> Attribute:
    element = node.get("Elem")
    given = node.get("Optional") is True or node.get("Required") is True
    alike, unknown = kind_of(node)
    return Attribute(
        given,
        computed=given and node.get("Computed") is True,
        replaces=node.get("ForceNew") is True,
        required=node.get("Required") is True,
        is_set=_named(node.get("Type")) == "schema.TypeSet",
        default=default_of(node),
        alike=alike,
        unknown=unknown,
        inner=attributes(element) if isinstance(element, dict) and "Schema" in element else {},
    )


def _of_framework(node: Mapping[str, Any]) -> Attribute:
    kind = str(node["$"])
    block = kind.endswith("Block")
    given = block or node.get("Optional") is True or node.get("Required") is True
    modifiers = [*_modifiers(node)]
    inner = node.get("NestedObject") if "NestedObject" in node else node
    alike, unknown = kind_of(node)
    return Attribute(
        given,
        computed=not block and node.get("Optional") is True and node.get("Computed") is True,
        replaces=any(_REPLACES.search(one) for one in modifiers),
        required=node.get("Required") is True,
        may=any(_MAY_REPLACE.search(one) and not _REPLACES.search(one) for one in modifiers),
        is_set=kind.startswith("Set"),
        default=default_of(node),
        alike=alike,
        unknown=unknown,
        inner=attributes(inner) if isinstance(inner, dict) else {},
    )


def _modifiers(node: Mapping[str, Any]) -> Iterator[str]:
    given = node.get("PlanModifiers")
    for one in given if isinstance(given, list) else ():
        yield _named(one)


def _named(value: Any) -> str:
    return str(value.get("func") or value.get("source") or "") if isinstance(value, dict) else ""


def spellings(name: str) -> Iterator[str]:
    """Names of Pulumi's for a name of Terraform's: one for a value, a plural for a list."""
    first, *rest = name.split("_")
    one = first + "".join(word.capitalize() for word in rest)
    yield one
    yield f"{one}s"
    yield f"{one}es"
    yield f"{one.removesuffix('y')}ies"
