"""Known Helm charts: their CRDs, Services and node resources."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Crd:
    """A custom kind that a cluster serves."""

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...]
    namespaced: bool

    @property
    def name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"

    def document(self) -> dict[str, Any]:
        """The CRD as JSON."""
        return asdict(self) | {"versions": list(self.versions)}

    @staticmethod
    def parse(row: Mapping[str, Any]) -> "Crd":
        """A CRD from JSON or TOML."""
        return Crd(row["group"], row["kind"], row["plural"], tuple(row["versions"]), row["namespaced"])


@dataclass(frozen=True)
class ChartService:
    """A Service of a chart, named `fullname` + suffix; the value at the path `type_from` sets its type."""

    type: str
    ports: tuple[Mapping[str, Any], ...]
    type_from: str = ""
    suffix: str = ""


@dataclass(frozen=True)
class ChartFacts:
    """One chart; `crds_in` is "templates" (removed with the release) or "crds" (never removed by Helm)."""

    name: str
    version: str | None = None
    app: str | None = None
    repositories: tuple[str, ...] = ()
    crds: tuple[Crd, ...] = ()
    crds_in: str = "templates"
    provides: tuple[str, ...] = ()
    needs_node_label: tuple[str, ...] = ()
    autoscaler: bool = False
    subcharts: tuple[str, ...] = field(default=())
    services: tuple[ChartService, ...] = ()
    cluster_roles: tuple[str, ...] = ()
    """ClusterRoles that a release brings, with `{release}` for its name; empty where they are not known."""


@functools.cache
def charts() -> Mapping[str, ChartFacts]:
    """Every known chart by name."""
    with Path(__file__).with_name("charts.toml").open("rb") as file:
        rows = tomllib.load(file)["chart"]
    return {row["name"]: _chart(row) for row in rows}


def find(reference: str) -> ChartFacts | None:
    """The chart of a release's `chart`: a name, `repo/name`, or an OCI or HTTP reference; None if unknown."""
    name = reference.rstrip("/").rpartition("/")[2]
    return charts().get(name.partition(":")[0].removesuffix(".tgz"))


def all_crds(chart: ChartFacts) -> tuple[Crd, ...]:
    """The CRDs of a chart and its dependencies."""
    nested = (crd for name in chart.subcharts for crd in all_crds(charts()[name]))
    return (*chart.crds, *nested)


def _chart(row: Mapping[str, Any]) -> ChartFacts:
    return ChartFacts(
        name=row["name"],
        version=row.get("version"),
        app=row.get("app"),
        repositories=tuple(row["repositories"]),
        crds=tuple(Crd.parse(crd) for crd in row.get("crds", ())),
        crds_in=row.get("crds_in", "templates"),
        provides=tuple(row.get("provides", ())),
        needs_node_label=tuple(row.get("needs_node_label", ())),
        autoscaler=row.get("autoscaler", False),
        subcharts=tuple(row.get("subcharts", ())),
        services=tuple(
            ChartService(**{**service, "ports": tuple(service["ports"])})
            for service in row.get("services", ())
        ),
        cluster_roles=tuple(row.get("cluster_roles", ())),
    )
