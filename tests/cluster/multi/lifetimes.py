"""Lifetimes of pods on several clusters, and times at which a job runs in two places."""

import contextlib
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import requests

from rehearsal.controlplane.api import ApiError, Object
from rehearsal.controlplane.control_plane import ControlPlane

JOB_LABEL = "batch.kubernetes.io/job-name"
_WATCH_S = 1800.0


@dataclass
class Lifetime:
    """A pod that ran; times by one clock, this machine's."""

    cluster: str
    job: str
    index: str
    began: float
    ended: float | None = None


@dataclass
class Lifetimes:
    """The pods that ran, by UID."""

    pods: dict[str, Lifetime] = field(default_factory=dict)

    def see(self, cluster: str, kind: str, pod: Object) -> None:
        """Note a change of a pod."""
        metadata, now = pod["metadata"], time.monotonic()
        phase = (pod.get("status") or {}).get("phase")
        labels = metadata.get("labels") or {}
        if JOB_LABEL not in labels:
            return
        found = self.pods.get(metadata["uid"])
        if found is None and phase == "Running" and kind != "DELETED":
            index = labels.get("batch.kubernetes.io/job-completion-index", "0")
            self.pods[metadata["uid"]] = Lifetime(cluster, labels[JOB_LABEL], index, now)
        elif found and found.ended is None and (kind == "DELETED" or phase in ("Succeeded", "Failed")):
            found.ended = now

    def gone(self, cluster: str, there: Collection[str]) -> None:
        """Note the pods of a cluster that are there no more."""
        for uid, one in self.pods.items():
            if one.cluster == cluster and one.ended is None and uid not in there:
                one.ended = time.monotonic()

    def twice(self) -> list[tuple[Lifetime, Lifetime]]:
        """Pairs of pods of one job and index that ran at the same time."""
        by_rank: dict[tuple[str, str], list[Lifetime]] = defaultdict(list)
        for one in list(self.pods.values()):
            by_rank[one.job, one.index].append(one)
        found = []
        for rows in by_rank.values():
            rows.sort(key=lambda one: one.began)
            for first, second in itertools.pairwise(rows):
                if first.ended is None or second.began < first.ended:
                    found.append((first, second))
        return found


@contextmanager
def watched(planes: Mapping[str, ControlPlane]) -> Iterator[Lifetimes]:
    """The lifetimes of pods on these clusters, from now on."""
    found, ending = Lifetimes(), threading.Event()

    def watch(name: str, plane: ControlPlane) -> None:
        with plane.api() as api:
            while not ending.is_set():
                # An API server that is started again.
                with contextlib.suppress(ApiError, requests.RequestException):
                    there = {pod["metadata"]["uid"] for pod in api.list("v1", "Pod")}
                    found.gone(name, there)
                    for change in api.watch("v1", "Pod", timeout_s=_WATCH_S):
                        found.see(name, *change)

    threads = [threading.Thread(target=watch, args=one, daemon=True) for one in planes.items()]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        ending.set()
