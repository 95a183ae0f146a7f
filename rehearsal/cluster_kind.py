"""Kind of Kubernetes of a rehearsal home: the emulation or a real control plane; stored in the home."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from infra.errors import Problem, UserError
from rehearsal.control import HOME_VARIABLE, private

_FILE = "kubernetes.json"


class ClusterKind(StrEnum):
    """API server of a cluster."""

    EMULATED = "emulated"
    REAL = "real"


class ProviderKind(StrEnum):
    """Kubernetes provider of the engine: ours, or pulumi-resource-kubernetes itself."""

    OURS = "ours"
    REAL = "real"


@dataclass(frozen=True)
class Choice:
    """Kinds of cluster and provider of a home."""

    cluster: ClusterKind = ClusterKind.EMULATED
    provider: ProviderKind = ProviderKind.OURS

    def __str__(self) -> str:
        return f"--cluster {self.cluster} --provider {self.provider}"


def chosen(home: Path) -> Choice:
    """The choice of a home; the emulation by default."""
    path = home / _FILE
    if not path.exists():
        return Choice()
    content = json.loads(path.read_text())
    return Choice(ClusterKind(content["cluster"]), ProviderKind(content["provider"]))


def real_cluster(home: Path) -> bool:
    """Return whether the clusters of a home are real."""
    return chosen(home).cluster is ClusterKind.REAL


def choose(
    home: Path, cluster: ClusterKind | None, provider: ProviderKind | None, made: Mapping[str, int]
) -> bool:
    """Choose for a home, None keeps the present choice; True when that changes it.

    `made` counts the resources of the home by package. Raises UserError when it was made with another choice.
    """
    before = chosen(home)
    wanted = Choice(cluster or before.cluster, provider or before.provider)
    if cluster is ClusterKind.EMULATED and provider is None:
        wanted = Choice()
    if wanted.provider is ProviderKind.REAL and wanted.cluster is not ClusterKind.REAL:
        rule = "the real provider needs a real control plane"
        fix = "Add --cluster real."
        raise UserError(
            [Problem("--provider", str(wanted.provider), rule, fix, code="real-provider-needs-cluster")]
        )
    if wanted == before:
        return False
    if any(made.values()):
        rule = f"{home} holds {sum(made.values())} resources that were made with {before}"
        fix = (
            "Run `trainstack destroy -s STACK --rehearse --yes` for each stack first,"
            f" or name another home in {HOME_VARIABLE}."
        )
        raise UserError([Problem("--cluster", str(wanted), rule, fix, code="cluster-kind-has-resources")])
    (private(home) / _FILE).write_text(json.dumps(asdict(wanted)))
    return True
