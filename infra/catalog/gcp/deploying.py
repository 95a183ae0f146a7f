"""Required APIs and deployer permissions of a Google Cloud project."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from infra.catalog.fact import Fact, Name
from infra.catalog.tables import read_table

PUBLISHER: Final = "serviceAccount:billing-budget-alert@system.gserviceaccount.com"
"""Cloud Billing's publisher of budgets, which is in no organization of a customer.

Source: Organization Policy documentation, "Restrict identities with domain-restricted sharing", which lists
it; the Budget API grants it the topic when it is connected, which requires the caller's
`pubsub.topics.setIamPolicy`."""
IAM_PAUSE_S: Final = 120
"""Seconds of a pause before what needs a change of IAM (ADR 67)."""
_TABLES: Final = Path(__file__).parent / "tables"


class ProjectPermission(Fact):
    """Permissions of the deployer for resources of a type."""

    type: Name
    """The type's token, or `kubernetes:` for objects in the cluster."""
    of: Literal["every", "cluster", "jobs", "slurm"] = "every"
    """Created by stacks with a cluster, by those with managed jobs, by those with Slurm, or by all."""
    on: Literal["project", "billing"] = "project"
    """Granted on the project or on the billing account."""
    permissions: tuple[Name, ...] = Field(min_length=1)


Part = Literal["data.shared_fs", "data.homes", "data.on_destroy", "smoke.schedule", "layout.clusters"]
"""A setting of the spec that needs an API."""


class RequiredApi(Fact):
    """An API that a stack uses."""

    name: Name
    of: Literal["every", "cluster", "no_cluster", "jobs", "slurm"] = "every"
    """Needed by stacks with a cluster, by those without, by those with managed jobs or Slurm, or by all."""
    needed_by: tuple[Part, ...] = ()
    """Settings of the spec that need it; empty: every stack of that kind needs it.

    `layout.clusters`: a cluster whose manager is on another cloud.
    `data.on_destroy`: homes that are kept, and so backed up. `smoke.schedule`: only without a cluster, which
    has its own scheduler.
    """


@cache
def permissions() -> Mapping[str, ProjectPermission]:
    """By type of resource. Raises CatalogError."""
    return read_table(_TABLES / "permissions.toml", "permission", ProjectPermission, "type")


@cache
def apis() -> Mapping[str, RequiredApi]:
    """By name. Raises CatalogError."""
    return read_table(_TABLES / "apis.toml", "api", RequiredApi, "name")


def permissions_of_jobs(*, scheduled: bool, login: bool) -> list[str]:
    """Permissions on the project for the deployer of a stack without a cluster.

    `scheduled`: its validation is repeated. `login`: it has an OAuth client.
    """
    absent = {"gcp:cloudscheduler/": not scheduled, "gcp:iap/settings:": not login}
    left_out = tuple(prefix for prefix, none in absent.items() if none)
    rows = [row for row in permissions().values() if row.on == "project" and row.of in ("every", "jobs")]
    return sorted({one for row in rows if not row.type.startswith(left_out) for one in row.permissions})


_NOT_OF_SLURM: Final = (
    "gcp:projects/iAMMember:", "gcp:projects/iAMCustomRole:", "gcp:pubsub/", "gcp:serviceaccount/",
    "gcp:sql/", "gcp:storage/managedFolderIamMember:",
)  # fmt: skip
_SLURM_AND_CLUSTER: Final = ("gcp:filestore/", "gcp:lustre/", "gcp:backupdisasterrecovery/")
_OF_COPIES: Final = (
    "gcp:projects/iAMCustomRole:", "gcp:projects/iAMMember:", "gcp:serviceaccount/account:",
    "gcp:storage/bucketIAMMember:",
)  # fmt: skip
"""Of the job that copies Managed Lustre to buckets."""


def permissions_of_slurm(*, shared_fs: bool, homes: bool, kept: bool) -> list[str]:
    """Permissions on the project for the deployer of a stack with Slurm; `kept`: data on destroy."""
    absent = {
        "gcp:filestore/": not homes,
        "gcp:lustre/": not shared_fs,
        "gcp:cloudscheduler/": not shared_fs,
        "gcp:backupdisasterrecovery/": not (homes and kept),
    }
    left_out = tuple(prefix for prefix, none in absent.items() if none)
    found: set[str] = set()
    for row in permissions().values():
        own = row.of in ("every", "slurm") and not row.type.startswith(_NOT_OF_SLURM)
        own |= row.type.startswith(_SLURM_AND_CLUSTER) or (shared_fs and row.type.startswith(_OF_COPIES))
        if own and row.on == "project" and not row.type.startswith(left_out):
            found.update(row.permissions)
    return sorted(found)


def apis_of(*, shared_fs: bool, homes: bool, kept: bool, federated: bool) -> list[str]:
    """The APIs of a stack with a cluster and these parts.

    `kept`: data is kept on destroy; `federated`: its manager is on another cloud.
    """
    wanted = {
        "data.shared_fs": shared_fs,
        "data.homes": homes,
        "data.on_destroy": homes and kept,
        "layout.clusters": federated,
    }
    return _apis("cluster", wanted)


def apis_of_slurm(*, shared_fs: bool, homes: bool, kept: bool) -> list[str]:
    """The APIs of a stack with Slurm and these parts; `kept`: data is kept on destroy."""
    wanted = {"data.shared_fs": shared_fs, "data.homes": homes, "data.on_destroy": homes and kept}
    return _apis("slurm", wanted)


def apis_of_jobs(*, scheduled: bool) -> list[str]:
    """The APIs of a stack without a cluster; `scheduled`: its validation is repeated."""
    return _apis("jobs", {"smoke.schedule": scheduled})


def _apis(own: str, wanted: Mapping[str, bool]) -> list[str]:
    kinds = ("every", own, *(() if own == "cluster" else ("no_cluster",)))
    rows = (row for row in apis().values() if row.of in kinds)
    return [row.name for row in rows if not row.needed_by or any(wanted.get(one) for one in row.needed_by)]
