"""Helm releases that an interrupted operation left pending: until that record is gone, Helm refuses others.

Helm writes a record of the new revision before it changes anything, and its outcome afterwards (helm v3.20.2
pkg/action/upgrade.go, prepareUpgrade; the fields are those of pkg/storage/driver/secrets.go). Where the
control plane is lost in between, or the engine is killed, the record stays. Without it the revision before is
the last one: the next upgrade starts from that, and adopts what the interrupted one created.
"""

import datetime
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from infra.clouds.kubectl import ApiResponse, ClusterApi
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed

_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_META = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_PENDING = "owner=helm,status in (pending-install,pending-rollback,pending-upgrade)"
_OK, _GONE, _FORBIDDEN, _CHANGED, _POLL_S = 200, 404, 403, 409, 2.0


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
    """The pending ones of these releases, as namespaces and names; none where they cannot be listed.

    Namespaces of members are not read: their Secrets may have these labels too.
    """
    rows = []
    for namespace in sorted({namespace for namespace, _ in releases}):
        path = f"/api/v1/namespaces/{namespace}/secrets"
        try:
            found = listed(cluster, path, _LIST, labelSelector=_PENDING)
        except ListRefusedError:
            continue
        for about in (body["metadata"] for body in found):
            labels = about["labels"]
            if (namespace, labels.get("name")) in releases:
                since = datetime.datetime.fromisoformat(about["creationTimestamp"])
                record = f"{path}/{about['name']}"
                rows.append(PendingRelease(labels["name"], namespace, labels["status"], record, since))
    return rows


def settle(
    cluster: ClusterApi,
    found: Collection[PendingRelease],
    report: Callable[[str], None],
    *,
    limit_s: float,
    poll_s: float = _POLL_S,
) -> None:
    """Delete the records once their operations have ended: by themselves, or `limit_s` after their start.

    The provider of a killed engine may still run Helm for that long: without its record it would later roll
    back what the next operation deploys. A rollback that follows a failed upgrade has a record of its own,
    for which this waits too.
    Raises UserError where the cluster denies it, or does not respond for `limit_s`.
    """
    while found:
        for one in found:
            _settle(cluster, one, report, limit_s, poll_s)
        found = pending(cluster, {(one.namespace, one.name) for one in found})


def _settle(
    cluster: ClusterApi, one: PendingRelease, report: Callable[[str], None], limit_s: float, poll_s: float
) -> None:
    gives_up, announced = time.monotonic() + limit_s, False
    while True:
        answer = cluster.get(one.path, _META)
        about = answer.body.get("metadata")
        if answer.status == _OK and about:
            if (about.get("labels") or {}).get("status") != one.status:
                return
            left = limit_s - _age_s(answer)
            if left <= 0:
                if _deleted(cluster, one, about):
                    report(f"release {one}: its operation was interrupted, and starts again")
                    return
            elif not announced:
                announced = True
                report(f"release {one}: waiting for its end, {left:.0f} s at most")
        elif answer.status == _GONE:
            return
        elif answer.status == _FORBIDDEN or time.monotonic() >= gives_up:
            raise _unsettled(cluster, one, answer)
        time.sleep(poll_s)


def _age_s(answer: ApiResponse) -> float:
    """Age of the object by the clock of the server, which has set its creation time."""
    since = datetime.datetime.fromisoformat(answer.body["metadata"]["creationTimestamp"])
    return (answer.date - since).total_seconds() if answer.date else 0


def _deleted(cluster: ClusterApi, one: PendingRelease, about: Mapping[str, Any]) -> bool:
    """Delete the record; return False if it has changed since it was read: Helm may have ended just then."""
    seen = {"uid": about["uid"], "resourceVersion": about["resourceVersion"]}
    answer = cluster.send("DELETE", one.path, {"preconditions": seen})
    if answer.status not in (_OK, _GONE, _CHANGED):
        raise _unsettled(cluster, one, answer)
    return answer.status != _CHANGED


def _unsettled(cluster: ClusterApi, one: PendingRelease, answer: ApiResponse) -> UserError:
    rule = f"{cluster.server} does not allow to read and delete its record: {answer.code}: {answer.message}"
    # Of an install that did not end there is no revision to roll back to.
    command = "uninstall" if one.status == "pending-install" else "rollback"
    fix = f"Run `helm {command} {one.name} --namespace {one.namespace}`, then repeat the command."
    return UserError([Problem(str(one), None, rule, fix, code="release-is-pending")])
