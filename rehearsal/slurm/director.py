"""Clusters of Cluster Director of a rehearsal, from the emulated resource."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from infra.engine.golang import SetupError
from infra.slurm.machines import NodeHardware, machine
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.slurm.local_files import LocalNode
from rehearsal.slurm.running import Image, RunningClusters
from rehearsal.slurm.service_files import Queue, ServiceSystem, SlurmGroup

CLUSTER: Final = "gcp:hypercomputecluster/cluster:Cluster"
# Defaults of SlurmConfig (v1alpha/hypercompute_cluster.proto): no limits enforced, no preemption.
_SETTINGS: Final = {"PriorityType": "priority/basic", "PreemptType": "preempt/none"}


class DirectorClusters:
    """See `RunningClusters`. A reserved machine has the type of its reservation, if that is emulated."""

    def __init__(self, state: State, home: Path) -> None:
        self._state = state
        self._clusters = RunningClusters(home, lambda: {one.id for one in self.records()})

    def records(self) -> list[Record]:
        """All clusters."""
        return self._state.find(type=CLUSTER)

    def run(self, cluster: Record, script: str) -> tuple[int, str]:
        """Exit code and output of a script on the login node. Raises SetupError without Slurm's packages."""
        return self._clusters.run(cluster.id, lambda: self._system(cluster.id), script, Image())

    def stop(self) -> None:
        """End the processes of all clusters; does nothing if they have ended."""
        self._clusters.stop()

    def live(self) -> list[tuple[str, LocalNode, Path]]:
        """Cluster, node and log of each node that runs."""
        return self._clusters.live()

    def _system(self, cluster: str) -> ServiceSystem:
        record = next((one for one in self.records() if one.id == cluster), None)
        if record is None:
            raise SetupError(f"cluster {cluster} does not exist")
        slurm = record.inputs["orchestrator"]["slurm"]
        types = {str(one["id"]): self._machine(one["config"]) for one in record.inputs["computeResources"]}
        return ServiceSystem(
            name=str(record.inputs["clusterId"]),
            settings={**_SETTINGS, **_scripts(slurm)},
            groups=tuple(_group(one, types[str(one["computeId"])]) for one in slurm["nodeSets"]),
            queues=tuple(_partition(one, slurm) for one in slurm["partitions"]),
            scripts={
                f"{kind}.sh": "\n".join(slurm[f"{kind}BashScripts"])
                for kind in ("prolog", "epilog")
                if slurm.get(f"{kind}BashScripts")
            },
        )

    def _machine(self, config: Mapping[str, Any]) -> str:
        (chosen,) = (value for value in config.values() if value)
        if "machineType" in chosen:
            return str(chosen["machineType"])
        name = str(chosen.get("reservation")).rpartition("/")[2]
        for one in self._state.find(type="gcp:compute/reservation:Reservation"):
            if one.outputs.get("name") == name:
                held = one.inputs["specificReservation"]["instanceProperties"]
                return str(held["machineType"])
        return ""


def _scripts(slurm: Mapping[str, Any]) -> dict[str, str]:
    kinds = {"prologBashScripts": "Prolog", "epilogBashScripts": "Epilog"}
    return {key: f"{key.lower()}.sh" for name, key in kinds.items() if slurm.get(name)}


def _group(nodeset: Mapping[str, Any], name: str) -> SlurmGroup:
    nodes = int(nodeset.get("staticNodeCount") or 0) + int(nodeset.get("maxDynamicNodeCount") or 0)
    hardware = machine("gcp", name) or NodeHardware(2, 4096)
    return SlurmGroup(str(nodeset["id"]), str(nodeset["id"]), nodes, hardware, {})


def _partition(partition: Mapping[str, Any], slurm: Mapping[str, Any]) -> Queue:
    default = slurm.get("defaultPartition") in (None, "", partition["id"])
    groups = tuple(str(one) for one in partition["nodeSetIds"])
    return Queue(str(partition["id"]), groups, {"Default": "YES" if default else "NO"})
