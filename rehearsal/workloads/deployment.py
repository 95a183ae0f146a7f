"""The controller of one Deployment: keeps its replicas running."""

import json
import threading

from rehearsal.workloads.controllers import PodOrder, Spawn, Status, letters, stop_all, timestamp
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.translate import Object


class DeploymentController:
    """A Deployment whose pods run; a new specification needs a new one."""

    def __init__(self, owner: Object, spec: Object, spawn: Spawn) -> None:
        """`owner` is the metadata of the Deployment in the cluster."""
        namespace, name, uid = owner["namespace"], owner["name"], owner["uid"]
        self._generation = int(owner["generation"])
        self._spec = spec
        self.changed = threading.Event()
        template = spec["template"]
        metadata = template.get("metadata") or {}
        revision = letters(f"{uid}/{json.dumps(template, sort_keys=True)}", 10)
        self._pods: list[PodRunner] = []
        for index in range(self.replicas):
            order = PodOrder(
                name=f"{name}-{revision}-{letters(f'{uid}/{revision}/{index}', 5)}",
                slot=f"deployment|{namespace}/{name}|{index}",
                spec=template["spec"],
                labels={**(metadata.get("labels") or {}), "pod-template-hash": revision},
                annotations=metadata.get("annotations") or {},
            )
            self._pods.append(spawn(order, "Always", self.changed.set))

    def start(self) -> None:
        """Start the pods; the cluster must know their names already."""
        for runner in self._pods:
            runner.start()

    @property
    def replicas(self) -> int:
        """Number of wanted pods."""
        wanted = self._spec.get("replicas")
        return 1 if wanted is None else int(wanted)

    def pods(self) -> list[PodRunner]:
        """Its pods."""
        return list(self._pods)

    @property
    def ready(self) -> bool:
        """Return whether every replica is ready."""
        return sum(runner.state.ready for runner in self._pods) == self.replicas

    def status(self) -> Status:
        """Counts and conditions."""
        ready = sum(runner.state.ready for runner in self._pods)
        counts = {
            "replicas": self.replicas,
            "updatedReplicas": self.replicas,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": self.replicas - ready,
        }
        available = self.ready
        word = "has" if available else "does not have"
        return {
            "observedGeneration": self._generation,
            **{name: count for name, count in counts.items() if count},
            "conditions": [
                {
                    "type": "Available",
                    "status": str(available),
                    "reason": f"MinimumReplicas{'A' if available else 'Una'}vailable",
                    "message": f"Deployment {word} minimum availability.",
                    "lastTransitionTime": timestamp(),
                    "lastUpdateTime": timestamp(),
                }
            ],
        }

    def stop(self, *, now: bool = False) -> None:
        """End every pod; returns when none of their processes runs."""
        stop_all(self._pods, now=now)
