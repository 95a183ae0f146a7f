"""Helm releases that an interrupted operation left pending: until that record is gone, Helm refuses others.

Helm writes a record of the new revision before it changes anything, and its outcome afterwards (helm v3.20.2
pkg/action/upgrade.go, prepareUpgrade; the fields are those of pkg/storage/driver/secrets.go). Where the
control plane is lost in between, or the engine is killed, the record stays. Without it the revision before is
the last one: the next upgrade starts from that, and adopts what the interrupted one created.
"""

import datetime
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from infra.clouds.kubectl import ClusterApi
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed

_META = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_PENDING = "owner=helm,status in (pending-install,pending-rollback,pending-upgrade)"
_OK, _GONE, _POLL_S = (200, 202), 404, 2.0


@dataclass(frozen=True)
class PendingRelease:
    """The record of a revision whose outcome was never written."""

    name: str
    namespace: str
    status: str
    path: str
    since: datetime.datetime

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.status} since {self.since:%H:%M:%S} UTC)"


def pending(cluster: ClusterApi, releases: Collection[tuple[str, str]]) -> list[PendingRelease]:
    """The pending ones of these releases, as namespaces and names; none where they cannot be listed."""
    try:
        found = listed(cluster, "/api/v1/secrets", _META, labelSelector=_PENDING)
    except ListRefusedError:
        return []
    rows = []
    for body in found:
        about = body["metadata"]
        labels, namespace = about["labels"], about["namespace"]
        if (namespace, labels["name"]) in releases:
            path = f"/api/v1/namespaces/{namespace}/secrets/{about['name']}"
            since = datetime.datetime.fromisoformat(about["creationTimestamp"])
            rows.append(PendingRelease(labels["name"], namespace, labels["status"], path, since))
    return rows


def settle(
    cluster: ClusterApi, found: Collection[PendingRelease], report: Callable[[str], None], *, limit_s: float
) -> None:
    """Delete the records once their operations have ended: by themselves, or `limit_s` after their start.

    The provider of a killed engine may still run Helm for as long as the release's timeout. Raises UserError
    where the cluster denies it.
    """
    for one in found:
        ends = one.since.timestamp() + limit_s
        if time.time() < ends:
            report(f"release {one}: waiting for its end, {ends - time.time():.0f} s at most")
        while _is_pending(cluster, one):
            if time.time() >= ends:
                _delete(cluster, one)
                report(f"release {one}: its operation was interrupted, and starts again")
                break
            time.sleep(_POLL_S)


def _is_pending(cluster: ClusterApi, one: PendingRelease) -> bool:
    labels = cluster.get(one.path).body.get("metadata", {}).get("labels") or {}
    return bool(labels.get("status") == one.status)


def _delete(cluster: ClusterApi, one: PendingRelease) -> None:
    answer = cluster.send("DELETE", one.path, {})
    if answer.status not in (*_OK, _GONE):
        rule = f"{cluster.server} does not allow to delete its record: {answer.code}: {answer.message}"
        fix = f"Run `helm rollback {one.name} --namespace {one.namespace}`, then repeat the command."
        raise UserError([Problem(str(one), None, rule, fix, code="release-is-pending")])
