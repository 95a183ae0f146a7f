"""Kinds of resource types, and facts about kinds from `kinds.toml`."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HELM_RELEASE = "kubernetes:helm.sh/v3:Release"


@dataclass(frozen=True)
class ObjectKind:
    """A group ("" for the core group), version and kind."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """`apiVersion` of the kind's objects, such as `apps/v1` or `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@functools.cache
def facts() -> Mapping[str, Any]:
    """The contents of `kinds.toml`."""
    with Path(__file__).with_name("kinds.toml").open("rb") as file:
        return tomllib.load(file)


def parse(token: str) -> ObjectKind:
    """The kind of a resource type such as `kubernetes:apps/v1:Deployment`."""
    _, _, rest = token.partition(":")
    api, _, kind = rest.rpartition(":")
    group, _, version = api.rpartition("/")
    return ObjectKind("" if group == "core" else group, version, kind)


def is_patch(token: str) -> bool:
    """Return whether a type edits fields of an object of another owner, such as `NamespacePatch`."""
    group = parse(token).group
    return token.endswith("Patch") and ("." not in group or group.endswith(".k8s.io"))


def builtin_namespaced(kind: str) -> bool:
    """Return whether a built-in kind is namespaced."""
    return kind not in facts()["scope"]["cluster_scoped"]


def builtin_exists(kind: str, name: str) -> bool:
    """Return whether every cluster has an object of this kind and name (in each namespace)."""
    if kind == "ClusterRole" and name.startswith("system:"):
        return True
    return name in facts()["builtin"].get(kind, ())


def replaces(kind: ObjectKind) -> tuple[str, ...]:
    """Property prefixes whose change replaces an object of this kind."""
    table = facts()["replaces"].get(kind.group or "core", {})
    return ("metadata.name", "metadata.namespace", *table.get(kind.kind, ()))
