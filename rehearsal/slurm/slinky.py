"""Slurm systems of slurm-operator in a rehearsal, from the objects of an emulated cluster.

slurm.conf is built as the operator builds it (SlinkyProject/slurm-operator v1.1.0
internal/builder/controllerbuilder/controller_config.go, `buildSlurmConf`, `buildNodeSetConf`), with two
differences: nodes are lines of the file, because slurmd 22.05 of this machine does not register itself, and
settings of this machine replace those that it cannot have (`rehearsal.slurm.local_files`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra.engine.golang import SetupError
from rehearsal.core.state import State
from rehearsal.kubernetes.clusters import KubeCluster, made, resolve
from rehearsal.slurm.local_files import LocalNode
from rehearsal.slurm.running import RunningClusters

NAMESPACE: Final = "slurm"
_NEWER: Final = ("AccountingStoragePass", "MaxNodeCount", "CommunicationParameters", "LogTimeFormat")
"""Settings of the operator, or values of theirs, that Slurm 22.05 has not."""


@dataclass(frozen=True)
class OperatorSystem:
    """A Slurm system as objects: the specs of the Controller and its NodeSets, and files of ConfigMaps."""

    name: str
    controller: Mapping[str, Any]
    nodesets: tuple[tuple[str, Mapping[str, Any]], ...]
    files: Mapping[str, str]

    @property
    def groups(self) -> object:
        """Nodes: other ones need new daemons."""
        return tuple((name, spec.get("replicas"), spec.get("extraConf")) for name, spec in self.nodesets)

    @property
    def settings(self) -> object:
        """The Controller: another one needs a new daemon."""
        return self.controller

    def rendered(self, folder: str) -> dict[str, str]:
        """Texts by file name for `folder`."""
        lines = [f"ClusterName={self.name}", "SlurmctldHost=slurmctld", "ReturnToService=2", "GresTypes=gpu"]
        lines += ["SelectTypeParameters=CR_Core_Memory", "AccountingStorageTRES=gres/gpu"]
        lines += ["AccountingStorageType=accounting_storage/slurmdbd"]
        lines += [f"{key}={name}" for key, name in (("Prolog", "prolog.sh"), ("Epilog", "epilog.sh"))]
        lines += [_node(name, spec) for name, spec in self.nodesets]
        lines += [line for name, spec in sorted(self.nodesets) for line in _nodeset(name, spec)]
        text = "\n".join([*lines, str(self.controller.get("extraConf") or "")]) + "\n"
        for name in self.files:
            text = text.replace(f"/opt/trainstack/slurm/{name}", name)
        for name in ("prolog.sh", "epilog.sh", "health.sh"):
            text = text.replace(f"={name}", f"={folder}/{name}")
        gres = [
            f"NodeName={_hosts(name, spec)} AutoDetect=nvml Name=gpu Type={found[1]}"
            for name, spec in self.nodesets
            if (found := _gres(spec))
        ]
        register = f"#!/bin/sh\nsacctmgr -i add cluster {self.name} > /dev/null 2>&1 || true\n"
        return {
            **self.files,
            "slurm.conf": text,
            "gres.conf": "\n".join(gres) + "\n",
            "accounts.sh": register,
        }


class SlinkyClusters:
    """See `RunningClusters`."""

    def __init__(self, state: State, home: Path) -> None:
        self._state = state
        self._clusters = RunningClusters(home, self._known)

    def run(self, kubeconfig: str, script: str) -> tuple[int, str]:
        """Exit code and output of a script in the login pod. Raises SetupError without Slurm's packages."""
        cluster = resolve(self._state, {"kubeconfig": kubeconfig})
        assert cluster is not None
        return self._clusters.run(cluster.name, lambda: _system(cluster), script, {})

    def stop(self) -> None:
        """End the processes of all clusters; does nothing if they have ended."""
        self._clusters.stop()

    def live(self) -> list[tuple[str, LocalNode, Path]]:
        """Cluster, node and log of each node that runs."""
        return self._clusters.live()

    def _known(self) -> set[str]:
        clusters = (KubeCluster(self._state, record) for record in made(self._state))
        return {one.name for one in clusters if any(one.objects("Controller", NAMESPACE))}


def _system(cluster: KubeCluster) -> OperatorSystem:
    controllers = list(cluster.objects("Controller", NAMESPACE))
    if not controllers or not any(cluster.objects("LoginSet", NAMESPACE)):
        raise SetupError("the cluster has no Controller and LoginSet of slurm-operator")
    files: dict[str, str] = {}
    for record in cluster.objects("ConfigMap", NAMESPACE):
        if str(record.outputs["metadata"]["name"]).startswith("slurm-"):
            files |= {name: str(text) for name, text in (record.inputs.get("data") or {}).items()}
    # cgroup.conf is for the cgroups of a container, gres.conf for its driver.
    files = {name: text for name, text in files.items() if name.endswith(".sh")}
    nodesets = {
        str(one.outputs["metadata"]["name"]): one.inputs["spec"]
        for one in cluster.objects("NodeSet", NAMESPACE)
    }
    controller = controllers[0].inputs["spec"]
    name = str(controller.get("clusterName") or f"{NAMESPACE}_{controllers[0].name}")
    return OperatorSystem(name, controller, tuple(nodesets.items()), files)


def _prefix(name: str, spec: Mapping[str, Any]) -> str:
    """The name of NodeSet, feature and partition (`buildNodeSetConf`)."""
    pod = ((spec.get("template") or {}).get("spec") or {}).get("hostname")
    return str(pod).strip("-") if pod else name


def _hosts(name: str, spec: Mapping[str, Any]) -> str:
    """Pods of a NodeSet are `<hostname><ordinal>` from 0 (internal/controller/nodeset/utils/utils.go)."""
    last = int(spec.get("replicas") or 1) - 1
    return f"{_prefix(name, spec)}-{'0' if last == 0 else f'[0-{last}]'}"


def _conf(spec: Mapping[str, Any]) -> dict[str, str]:
    words = str(spec.get("extraConf") or "").split()
    return dict(word.split("=", 1) for word in words)


def _gres(spec: Mapping[str, Any]) -> list[str] | None:
    gres = _conf(spec).get("Gres")
    return gres.split(":") if gres else None


def _node(name: str, spec: Mapping[str, Any]) -> str:
    """The node as its slurmd registers it (`slurmdConfArgs`): the name of its NodeSet is a feature.

    Its memory is the pod's: the image takes the rest from what slurmd finds (SlinkyProject/containers,
    slurmd-entrypoint.sh, `calculateMemSpecLimit`).
    """
    chosen = _conf(spec)
    features = ",".join([_prefix(name, spec), *filter(None, [chosen.pop("Features", "")])])
    limits = ((spec.get("slurmd") or {}).get("resources") or {}).get("limits") or {}
    chosen = {"CPUs": str(limits.get("cpu", 1)), "RealMemory": str(_mib(limits["memory"])), **chosen}
    rest = " ".join(f"{key}={value}" for key, value in chosen.items())
    return f"NodeName={_hosts(name, spec)} {rest} Feature={features} State=UNKNOWN"


def _mib(quantity: str) -> int:
    """MiB of a quantity such as `80Gi`. Raises KeyError for another unit."""
    return int(quantity[:-2]) * {"Mi": 1, "Gi": 1024}[quantity[-2:]]


def _nodeset(name: str, spec: Mapping[str, Any]) -> list[str]:
    known, partition = _prefix(name, spec), spec.get("partition") or {}
    lines = [f"NodeSet={known} Feature={known}"]
    if partition.get("enabled"):
        lines.append(f"PartitionName={known} Nodes={known} {partition.get('config') or ''}")
    return lines
