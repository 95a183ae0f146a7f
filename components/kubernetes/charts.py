"""The Helm charts of a stack, pinned in a `charts.toml` per cloud, and their installation."""

import datetime
import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
from pulumi_kubernetes import helm

INSTALL_TIMEOUT_S = 600


@dataclass(frozen=True)
class PinnedChart:
    """One pinned chart: `repository` is None for a chart whose name is an `oci://` address."""

    chart: str
    version: str
    namespace: str
    source: str
    date: datetime.date
    repository: str | None = None


@functools.cache
def charts() -> Mapping[str, PinnedChart]:
    """Every pinned chart by its key: those of all clusters, and those of each cloud."""
    return _rows(sorted(Path(__file__).parents[1].glob("*/charts.toml")))


def charts_on(cloud: str) -> Mapping[str, PinnedChart]:
    """Those of all clusters, and those of one cloud, by their keys."""
    components = Path(__file__).parents[1]
    tables = [components / folder / "charts.toml" for folder in ("kubernetes", cloud)]
    return _rows([table for table in tables if table.exists()])


def _rows(tables: Iterable[Path]) -> Mapping[str, PinnedChart]:
    rows = [tomllib.loads(table.read_text(encoding="utf-8")) for table in tables]
    return {key: PinnedChart(**row) for table in rows for key, row in table.items()}


def release(
    name: str,
    chart: str,
    values: Mapping[str, Any],
    opts: pulumi.ResourceOptions,
    *,
    skip_crds: bool | None = None,
) -> "helm.v3.Release":  # in quotes: commands read the pins, without the SDK's modules
    """Install the pinned chart with key `chart` as the Helm release `chart`; its namespace must exist.

    With `skip_crds` the definitions in its folder `crds` are left out: `definitions` installs them.

    The release is atomic: an install that fails leaves nothing behind, so that the next `up` starts clean.
    Helm creates no namespace: one that it made would outlive the release.
    """
    pinned = charts()[chart]
    return helm.v3.Release(
        name,
        helm.v3.ReleaseArgs(
            chart=pinned.chart,
            version=pinned.version,
            repository_opts=helm.v3.RepositoryOptsArgs(repo=pinned.repository) if pinned.repository else None,
            name=chart,
            namespace=pinned.namespace,
            atomic=True,
            cleanup_on_fail=True,
            timeout=INSTALL_TIMEOUT_S,
            values=values,
            skip_crds=skip_crds,
        ),
        opts=opts,
    )
