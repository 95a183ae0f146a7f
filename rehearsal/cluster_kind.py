"""Which Kubernetes a rehearsal home has: the emulation, or a real control plane; remembered in the home."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from infra.errors import Problem, UserError
from rehearsal.control import HOME_VARIABLE, private

_FILE = "kubernetes.json"


class ClusterKind(StrEnum):
    """What answers as the API server of a cluster."""

    EMULATED = "emulated"
    REAL = "real"


class ProviderKind(StrEnum):
    """What answers the engine about Kubernetes: our provider, or pulumi-resource-kubernetes itself."""

    OURS = "ours"
    REAL = "real"


@dataclass(frozen=True)
class Choice:
    """What a home has."""

    cluster: ClusterKind = ClusterKind.EMULATED
    provider: ProviderKind = ProviderKind.OURS

    def __str__(self) -> str:
        return f"--cluster {self.cluster} --provider {self.provider}"


def chosen(home: Path) -> Choice:
    """What a home has; the emulation unless something else was chosen."""
    path = home / _FILE
    if not path.exists():
        return Choice()
    said = json.loads(path.read_text())
    return Choice(ClusterKind(said["cluster"]), ProviderKind(said["provider"]))


def real_cluster(home: Path) -> bool:
    """Whether a home's clusters are real."""
    return chosen(home).cluster is ClusterKind.REAL


def choose(
    home: Path, cluster: ClusterKind | None, provider: ProviderKind | None, made: Mapping[str, int]
) -> bool:
    """Choose for a home, None for what it has already; whether that changes it.

    `made` counts what exists in it, by package. Raises UserError when it was made with another choice.
    """
    before = chosen(home)
    wanted = Choice(cluster or before.cluster, provider or before.provider)
    if cluster is ClusterKind.EMULATED and provider is None:
        wanted = Choice()
    if wanted.provider is ProviderKind.REAL and wanted.cluster is not ClusterKind.REAL:
        rule = "the real provider needs a real control plane"
        raise UserError([Problem("--provider", str(wanted.provider), rule, "Add --cluster real.")])
    if wanted == before:
        return False
    if any(made.values()):
        rule = f"{home} holds {sum(made.values())} resources that were made with {before}"
        fix = f"Destroy them with {before} first, or name another home in {HOME_VARIABLE}."
        raise UserError([Problem("--cluster", str(wanted), rule, fix)])
    (private(home) / _FILE).write_text(json.dumps(asdict(wanted)))
    return True
