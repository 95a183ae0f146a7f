"""The real control planes of a rehearsal home: one per cluster, and one for programs that make no cluster."""

import functools
import threading
from pathlib import Path
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.kubernetes import ambient
from rehearsal.kubernetes.clusters import EKS_CLUSTER, GKE_CLUSTER, PACKAGE, KubeCluster, made
from rehearsal.kubernetes.controllers.pod_identities import PodIdentities
from rehearsal.realcluster.logins import CloudLogins
from rehearsal.realcluster.plane import Plane, PlaneSite
from rehearsal.realcluster.real_provider import AMBIENT, FOLDER


@functools.cache
def planes_of(state: State, home: Path) -> "Planes":
    """The control planes of a home, one object per process."""
    return Planes(state, home)


class Planes:
    """Thread-safe."""

    def __init__(self, state: State, home: Path) -> None:
        self._state, self._home = state, home
        self._lock = threading.Lock()
        self._planes: dict[str, Plane] = {}
        self._shared: tuple[PodIdentities, CloudLogins] | None = None

    def of(self, record: Record) -> Plane:
        """The control plane of a cloud's cluster, or the ambient one."""
        name = _folder(record)
        with self._lock:
            if self._shared is None:  # for all: a pod of one cluster logs in to another
                identities = PodIdentities(self._state)
                self._shared = identities, CloudLogins(self._state, identities)
            if name not in self._planes:
                scope = KubeCluster(self._state, record).scope
                folder = self._home / FOLDER / name
                identities, logins = self._shared
                url = "" if name == AMBIENT else logins.url(scope)
                site = PlaneSite(scope, folder, url)
                self._planes[name] = Plane(self._state, self._home, identities, site)
            return self._planes[name]

    def restore(self) -> None:
        """Start those again that have objects."""
        for record in (*made(self._state), ambient.RECORD):
            if self.of(record).known:
                self.of(record).api()

    def hold(self) -> None:
        """Start those that a foreign provider may use: without a cluster of a cloud, the ambient one."""
        self.restore()
        if not made(self._state):
            self.of(ambient.RECORD).api()

    def discard(self, record: Record) -> None:
        """End the control plane of a cluster and delete its objects."""
        plane = self.of(record)
        with self._lock:
            self._planes.pop(plane.folder.name, None)
        plane.discard()  # it takes seconds, in which the others go on

    def pods(self) -> list[dict[str, Any]]:
        """Every pod on their nodes, as a row of `status`."""
        return [row for plane in self.all() for row in plane.pods()]

    def describe(self) -> list[dict[str, Any]]:
        """Those that run and have objects or a cluster, as rows of `status`."""
        used = {_folder(record) for record in made(self._state)}
        if self._state.find(package=PACKAGE, scope=KubeCluster(self._state, ambient.RECORD).scope):
            used.add(AMBIENT)
        return [plane.describe() for plane in self.all() if plane.runs and plane.folder.name in used]

    def stop(self) -> None:
        """End every process; objects are kept."""
        for plane in self.all():
            plane.stop()
        with self._lock:
            shared, self._shared = self._shared, None
            self._planes.clear()
        for one in shared or ():
            one.stop()

    def all(self) -> list[Plane]:
        """Those of this process."""
        with self._lock:
            return list(self._planes.values())


def _folder(record: Record) -> str:
    """The folder of a control plane: name, region or zone, and account or project of its cluster."""
    if record.type == EKS_CLUSTER:  # arn:aws:eks:REGION:ACCOUNT:cluster/NAME
        _, _, _, region, account, name = str(record.outputs["arn"]).split(":", 5)
        return f"{name.removeprefix('cluster/')}.{region}.{account}"
    if record.type == GKE_CLUSTER:  # .../projects/PROJECT/locations/LOCATION/clusters/NAME
        parts = record.id.split("/")
        project, location, name = (
            parts[parts.index(one) + 1] for one in ("projects", "locations", "clusters")
        )
        return f"{name}.{location}.{project}"
    return AMBIENT
