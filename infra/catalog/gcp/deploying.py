"""What a project of Google Cloud must have for a stack: APIs, and permissions of the deployer."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from infra.catalog.fact import Fact, Name
from infra.catalog.tables import by_key, read_rows

_TABLES: Final = Path(__file__).parent / "tables"


class Permission(Fact):
    """What the deployer must be allowed for resources of a type."""

    type: Name
    """The type's token, or `kubernetes:` for objects in the cluster."""
    on: Literal["project", "billing"] = "project"
    """Where it is granted: on the project, or on the billing account."""
    permissions: tuple[Name, ...] = Field(min_length=1)


class Api(Fact):
    """An API that a stack uses."""

    name: Name
    needed_by: Literal["", "data.shared_fs", "data.homes", "data.on_destroy"] = ""
    """The value of the spec without which it is not needed; empty: every stack needs it.

    `data.on_destroy`: of homes that are kept, and so backed up.
    """


@cache
def permissions() -> Mapping[str, Permission]:
    """By type of resource. Raises CatalogError."""
    rows = read_rows(_TABLES / "permissions.toml", "permission", Permission)
    return by_key(rows, lambda row: row.type, "permissions.toml")


@cache
def apis() -> Mapping[str, Api]:
    """By name. Raises CatalogError."""
    return by_key(read_rows(_TABLES / "apis.toml", "api", Api), lambda row: row.name, "apis.toml")


def apis_of(*, shared_fs: bool, homes: bool, kept: bool) -> list[str]:
    """The APIs of a stack with these parts; `kept`: its data outlives it."""
    absent = {
        "data.shared_fs": not shared_fs,
        "data.homes": not homes,
        "data.on_destroy": not (homes and kept),
    }
    return [row.name for row in apis().values() if not absent.get(row.needed_by, False)]
