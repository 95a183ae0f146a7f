"""What a project of Google Cloud must have for a stack: APIs, permissions of the deployer, quotas."""

import math
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


class CloudQuota(Fact):
    """A quota of Google Cloud, as the Cloud Quotas API identifies it."""

    key: Name
    service: Name
    quota_id: Name
    description: Name
    unit: Name
    regional: bool = True
    gpu_family: str = ""
    """The value of its dimension `gpu_family`; empty where it has none."""
    accelerator: str = ""
    """The GPU that it is of, as GKE calls it."""
    market: Literal["", "on_demand", "preemptible"] = ""
    families: tuple[Name, ...] = ()
    """The families of machines whose vCPUs it counts."""


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


@cache
def cloud_quotas() -> Mapping[str, CloudQuota]:
    """By key. Raises CatalogError."""
    rows = read_rows(_TABLES / "cloud_quotas.toml", "quota", CloudQuota)
    return by_key(rows, lambda row: row.key, "cloud_quotas.toml")


def dimensions(row: CloudQuota, region: str) -> dict[str, str]:
    """What tells the value of a quota for a region from its others."""
    places = {"region": region} if row.regional else {}
    return {**places, **({"gpu_family": row.gpu_family} if row.gpu_family else {})}


def quota_request(row: CloudQuota, value: float, project: str, region: str) -> str:
    """The command that asks Google for a quota of `value`, rounded up."""
    told = ",".join(f"{name}={one}" for name, one in dimensions(row, region).items())
    return (
        f"gcloud beta quotas preferences create --project={project} --service={row.service} "
        f"--quota-id={row.quota_id} --preferred-value={math.ceil(value)}"
        + (f" --dimensions={told}" if told else "")
    )


def gpu_key(accelerator: str, market: str) -> str | None:
    """The quota that GPUs of a market count against; None where none is known."""
    rows = cloud_quotas().values()
    return next((row.key for row in rows if (row.accelerator, row.market) == (accelerator, market)), None)


def cpu_key(machine: str) -> str | None:
    """The quota of a region that the vCPUs of a machine type count against; None where none is known."""
    family = machine.partition("-")[0]
    return next((row.key for row in cloud_quotas().values() if family in row.families), None)


def vcpus(machine: str) -> int | None:
    """The vCPUs of a machine type of which the name ends in them, as `e2-standard-4`; None of others.

    Source: Compute Engine documentation, "Machine families resource and comparison guide", naming convention.
    """
    last = machine.rpartition("-")[2]
    return int(last) if last.isdigit() and machine.count("-") == 2 else None
