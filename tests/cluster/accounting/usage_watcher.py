"""Independent record of jobs' usage from changes of Workloads and pods, without the ledger's code."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from requests import RequestException

from agents.gpu_ledger.attempts import PROJECT_LABEL
from agents.shared.times import seconds
from components.kubernetes.queueing.kueue import API_VERSION
from rehearsal.controlplane.api import KubernetesApi, Object

GPU = "nvidia.com/gpu"
_LONGEST_S = 7200.0


class Watcher:
    """Usage of Workloads and lifetimes of pods, from their changes alone."""

    def __init__(self, api: KubernetesApi) -> None:
        self._access = api.access
        self._levels: dict[str, tuple[int, int]] = {}
        """GPUs that a Workload holds, and since when."""
        self.held: dict[tuple[str, str], int] = {}
        """GPU-seconds by namespace and project."""
        self.finished: set[str] = set()
        self.pods: dict[str, int] = {}
        """GPU-seconds of each pod from start to end, as the kubelet wrote them."""
        self.evicted = 0
        """How often a Workload lost its admission before it was finished."""
        self._began: dict[str, int] = {}
        self._over = False
        self._threads = [
            threading.Thread(target=self._watch, args=(version, kind, see), daemon=True)
            for version, kind, see in (("v1", "Pod", self._pod), (API_VERSION, "Workload", self._workload))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def sees(self) -> bool:
        """Whether it still receives every change; a broken watch invalidates its record."""
        return all(thread.is_alive() for thread in self._threads)

    def _watch(self, version: str, kind: str, see: Callable[[Object], None]) -> None:
        # One watch for the whole run: nothing is missed, or it ends with an error.
        with KubernetesApi(self._access) as api, self._until_over():
            for _, body in api.watch(version, kind, timeout_s=_LONGEST_S):
                if self._over:
                    return
                see(body)

    @contextmanager
    def _until_over(self) -> Iterator[None]:
        try:
            yield
        except RequestException:
            if not self._over:
                raise

    def stop(self) -> None:
        """End the record; the server may stop then."""
        self._over = True

    def _workload(self, body: Object) -> None:
        status, (pods,) = body.get("status") or {}, body["spec"]["podSets"]
        rows = {row["type"]: row for row in status.get("conditions") or ()}
        admitted, finished = rows.get("Admitted"), rows.get("Finished")
        if admitted is None:
            return
        metadata = body["metadata"]
        uid, labels = metadata["uid"], metadata.get("labels") or {}
        key = (metadata["namespace"], labels.get(PROJECT_LABEL, ""))
        asked = int(pods["template"]["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))
        done = sum(int(row["count"]) for row in status.get("reclaimablePods") or ())
        holds = admitted["status"] == "True"
        changes = [(seconds(admitted["lastTransitionTime"]), asked * int(pods["count"]) if holds else 0)]
        if holds and done:
            reclaimed = [row["time"] for row in metadata["managedFields"] if "reclaimable" in row["manager"]]
            changes.append((seconds(max(reclaimed)), asked * (int(pods["count"]) - done)))
        if finished:
            changes.append((seconds(finished["lastTransitionTime"]), 0))
            self.finished.add(uid)
        level, since = self._levels.get(uid, (0, 0))
        for at, new in changes:
            if at >= since and new != level and (level == 0 or at > since or new < level):
                self.held[key] = self.held.get(key, 0) + level * (at - since)
                level, since = new, at
        self.evicted += bool(self._levels.get(uid, (0, 0))[0]) and not holds and not finished
        self._levels[uid] = (level, since)

    def _pod(self, body: Object) -> None:
        for state in (body.get("status") or {}).get("containerStatuses") or ():
            now, uid = state.get("state") or {}, body["metadata"]["uid"]
            if "running" in now:
                self._began[uid] = seconds(now["running"]["startedAt"])
            if "terminated" in now and uid in self._began:
                asked = int(body["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))
                self.pods[uid] = asked * (seconds(now["terminated"]["finishedAt"]) - self._began[uid])
