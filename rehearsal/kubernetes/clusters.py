"""Emulated clusters: lookup by kubeconfig, and their objects."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rehearsal.core.model import UNKNOWN, Record, RefusalError
from rehearsal.core.state import State
from rehearsal.kubernetes import ambient, cloud_kinds
from rehearsal.kubernetes.charts import ChartFacts, Crd, all_crds, find
from rehearsal.kubernetes.kinds import HELM_RELEASE, ObjectKind, builtin_exists, parse

PACKAGE = "kubernetes"
EKS_CLUSTER = "aws:eks/cluster:Cluster"
GKE_CLUSTER = "gcp:container/cluster:Cluster"
_CRD = ObjectKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
# CRDs that outlive their release: Helm never removes those of a chart's `crds` folder.
_CRD_SPACE = "kubernetes-crd"
_VERSION = re.compile(r"(\d+)\.(\d+)")


def resolve(state: State, config: Mapping[str, Any]) -> "KubeCluster | None":
    """The cluster of a provider's `kubeconfig`; None while a preview does not know it yet.

    Raises RefusalError when no emulated cluster has its server address.
    """
    kubeconfig = config.get("kubeconfig")
    if kubeconfig is UNKNOWN:
        return None
    server = str(active(kubeconfig, config.get("context")).get("server") or "")
    if _bare(server) == _bare(ambient.ENDPOINT):
        return KubeCluster(state, ambient.RECORD)
    for record in made(state):
        if _bare(server) in {_bare(one) for one in endpoints(record)}:
            return KubeCluster(state, record)
    raise RefusalError(
        "ClusterUnreachable",
        f"configured Kubernetes cluster is unreachable: no emulated cluster has the address {server}.",
        "Give the provider a kubeconfig whose server is the endpoint of a cluster of this rehearsal.",
    )


def made(state: State) -> list[Record]:
    """The clusters of clouds."""
    return [*state.find(type=EKS_CLUSTER), *state.find(type=GKE_CLUSTER)]


def of_scope(state: State, scope: str) -> Record | None:
    """The cluster of a cloud whose objects have a scope of the state."""
    return next((record for record in made(state) if KubeCluster(state, record).scope == scope), None)


def endpoints(record: Record) -> list[str]:
    """Enabled addresses of a cloud's cluster."""
    control = record.outputs.get("controlPlaneEndpointsConfig") or {}
    by_name = (control.get("dnsEndpointConfig") or {}).get("endpoint")
    by_address = (control.get("ipEndpointsConfig") or {}).get("enabled") is not False
    found = [record.outputs.get("endpoint") if by_address else None, by_name]
    return [str(one) for one in found if one]


def kubeconfig(state: State, scope: str) -> str:
    """Kubeconfig of the cluster whose objects have a scope of the state."""
    record = of_scope(state, scope) or ambient.RECORD
    address = next(iter(endpoints(record)), str(record.outputs.get("endpoint")))
    server = f"https://{address.removeprefix('https://')}"
    return json.dumps({"clusters": [{"name": record.name, "cluster": {"server": server}}]})


@dataclass(frozen=True)
class KubeCluster:
    """The objects of one emulated cluster, read from the state; `record` is the cloud's cluster resource."""

    state: State
    record: Record

    @property
    def scope(self) -> str:
        """Scope of its objects in the state, unique among all clusters."""
        outputs = self.record.outputs
        return str(outputs.get("arn") or outputs.get("selfLink") or self.record.id)

    @property
    def name(self) -> str:
        """Name in the cloud."""
        return str(self.record.outputs.get("name") or self.record.name)

    @property
    def version(self) -> tuple[int, int]:
        """Version of the API server, such as (1, 36); the newest known if the cloud sets none."""
        outputs = self.record.outputs
        found = _VERSION.match(str(outputs.get("version") or outputs.get("masterVersion") or ambient.VERSION))
        major, minor = found.groups() if found else ambient.VERSION.split(".")
        return int(major), int(minor)

    @property
    def on_aws(self) -> bool:
        """Return whether AWS runs it: its load balancers have names, not addresses."""
        return self.record.type == EKS_CLUSTER

    def all(self, token: str) -> Iterator[Record]:
        """The objects of one type, oldest first."""
        return iter(self.state.find(package=PACKAGE, type=token, scope=self.scope))

    def objects(self, kind: str, namespace: str | None = None) -> Iterator[Record]:
        """The objects of a kind, whatever version they were written in, oldest first."""
        for record in self.state.find(package=PACKAGE, scope=self.scope, kind=kind):
            inside = namespace is None or namespace_of(record.outputs) == namespace
            if inside and record.type != HELM_RELEASE:
                yield record

    def get(self, kind: str, namespace: str, name: str) -> Record | None:
        """One object; `namespace` is empty for kinds that have none."""
        for record in self.state.find(package=PACKAGE, scope=self.scope, name=name, kind=kind):
            inside = not namespace or namespace_of(record.outputs) == namespace
            if inside and record.type != HELM_RELEASE:
                return record
        return None

    def exists(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether an object exists, those of every new cluster included."""
        return builtin_exists(kind, name) or self.get(kind, namespace, name) is not None

    def releases(self) -> Iterator[tuple[Record, ChartFacts | None]]:
        """The Helm releases and their charts, None for an unknown chart."""
        for record in self.state.find(package=PACKAGE, type=HELM_RELEASE, scope=self.scope):
            yield record, find(str(record.inputs.get("chart") or ""))

    def crds(self) -> Iterator[Crd]:
        """The custom kinds that the cluster serves."""
        if self.record.type == GKE_CLUSTER:
            yield from cloud_kinds.brought(self.record.outputs)
        for record in self.objects(_CRD.kind):
            yield _written_crd(record.inputs["spec"])
        for record, chart in self.releases():
            if chart and not record.inputs.get("skipCrds"):
                yield from all_crds(chart)
        prefix = f"{self.identity}|"
        for key, row in self.state.documents(_CRD_SPACE).items():
            if key.startswith(prefix):
                yield Crd.parse(row)

    def serves(self, kind: ObjectKind) -> Crd | None:
        """The CRD of a custom kind in exactly this version, or None."""
        for crd in self.crds():
            if (crd.group, crd.kind) == (kind.group, kind.kind) and kind.version in crd.versions:
                return crd
        return None

    def keep_crds(self, chart: ChartFacts) -> None:
        """Store the CRDs that a release leaves behind."""
        for crd in all_crds(chart):
            self.state.put_document(_CRD_SPACE, f"{self.identity}|{crd.name}", crd.document())

    def define(self, spec: Mapping[str, Any]) -> None:
        """Store the kind of a definition that no resource of a program is."""
        crd = _written_crd(spec)
        self.state.put_document(_CRD_SPACE, f"{self.identity}|{crd.name}", crd.document())

    def custom_objects(self, crds: tuple[Crd, ...]) -> list[Record]:
        """The objects of these custom kinds."""
        kinds = {(crd.group, crd.kind) for crd in crds}
        found = []
        for record in self.state.find(package=PACKAGE, scope=self.scope):
            kind = parse(record.type)
            if (kind.group, kind.kind) in kinds:
                found.append(record)
        return found

    @property
    def identity(self) -> str:
        """Distinguishes this cluster from an earlier one of the same name."""
        # A new cluster of the same name has another endpoint and starts empty.
        return f"{self.scope}|{self.record.outputs.get('endpoint')}"


def namespace_of(outputs: Mapping[str, Any]) -> str:
    """The namespace of an object, empty for a cluster-scoped one."""
    return str((outputs.get("metadata") or {}).get("namespace") or "")


def _written_crd(spec: Mapping[str, Any]) -> Crd:
    served = tuple(str(version["name"]) for version in spec["versions"] if version.get("served", True))
    names = spec["names"]
    return Crd(spec["group"], names["kind"], names["plural"], served, spec.get("scope") == "Namespaced")


def active(kubeconfig: Any, context: Any) -> Mapping[str, Any]:
    """The cluster that a kubeconfig selects, given as text, mapping, or path of a file.

    Raises RefusalError where there is none.
    """
    content = kubeconfig
    if isinstance(content, str):
        try:
            if "\n" not in content and not content.lstrip().startswith("{") and Path(content).is_file():
                content = Path(content).read_text()
            content = _parsed(content)
        except (YAMLError, OSError, UnicodeDecodeError) as error:
            raise _no_config(f"failed to parse kubeconfig: {error}") from error
    if not isinstance(content, Mapping):
        raise _no_config("no kubeconfig is given to the provider")
    contexts = {row["name"]: row["context"]["cluster"] for row in content.get("contexts") or ()}
    clusters = {row["name"]: row["cluster"] for row in content.get("clusters") or ()}
    chosen = contexts.get(context or content.get("current-context"))
    if chosen is None and len(clusters) == 1:
        chosen = next(iter(clusters))
    if chosen not in clusters:
        raise _no_config(
            f"kubeconfig has no cluster for its context {json.dumps(content.get('current-context'))}"
        )
    return dict(clusters[chosen])


@functools.lru_cache(maxsize=8)  # every request contains its kubeconfig
def _parsed(text: str) -> Any:
    return YAML(typ="safe").load(StringIO(text))


def _no_config(reason: str) -> RefusalError:
    return RefusalError(
        "ClusterUnreachable",
        f"configured Kubernetes cluster is unreachable: {reason}.",
        "Pass `kubeconfig` to pulumi_kubernetes.Provider.",
    )


def _bare(address: str) -> str:
    return address.removeprefix("https://").rstrip("/").removesuffix(":443").lower()
