"""Helm releases that an interrupted operation left: until their records are settled, no `up` installs them.

Helm writes a record of the new revision before it changes anything, and its outcome afterwards (helm v3.20.2
pkg/action/upgrade.go, prepareUpgrade; the fields are those of pkg/storage/driver/secrets.go). Where the
control plane is lost in between, or the engine is killed, the record stays. Without it the revision before is
the last one: the next upgrade starts from that, and adopts what the interrupted one created.

An uninstall marks the last revision as `uninstalling`, deletes the objects, and then all revisions
(pkg/action/uninstall.go). Where it is interrupted, no upgrade is possible ("has no deployed releases"), no
install ("cannot re-use a name that is still in use"), and the engine, which compares inputs, changes nothing:
fluxcd/flux2#4614 reports it for another client. Another uninstall completes it. Where only the engine was
killed, its state keeps a release that Helm has not.
"""

import contextlib
import datetime
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from infra.clouds.kubectl import ApiResponse, ClusterApi
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed

_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_META = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
UNINSTALLING = "uninstalling"
_UNSETTLED = ("pending-install", "pending-rollback", "pending-upgrade", UNINSTALLING)
_RELEASE = "kubernetes:helm.sh/v3:Release"
_OK, _GONE, _FORBIDDEN, _CHANGED, _POLL_S = 200, 404, 403, 409, 2.0
Identity = tuple[str, str]
"""Namespace and name of a release."""


@dataclass(frozen=True)
class PendingRelease:
    """The record of a revision whose outcome was never written."""

    name: str
    namespace: str
    status: str
    path: str
    since: datetime.datetime
    """Helm's last write of the record."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.status} since {self.since:%H:%M:%S} UTC)"


class HelmRecords:
    """Helm's records of these releases as they are now; without namespaces in which they cannot be listed.

    Namespaces of members are not read: their Secrets may have these labels too.
    """

    def __init__(self, cluster: ClusterApi, releases: Collection[Identity]) -> None:
        self._releases = releases
        self._found = _records(cluster, releases, "owner=helm")

    def pending(self) -> list[PendingRelease]:
        """Those whose last operation has no outcome."""
        return [
            PendingRelease(
                labels["name"],
                namespace,
                labels["status"],
                f"{_path(namespace)}/{about['name']}",
                _written(about),
            )
            for namespace, records in self._found.items()
            for about in records
            if (namespace, (labels := about["labels"]).get("name")) in self._releases
            and labels.get("status") in _UNSETTLED
        ]

    def gone(self, releases: Collection[Identity]) -> list[Identity]:
        """Those of some of these releases that have no record."""
        kept = {
            (space, about["labels"].get("name"))
            for space, records in self._found.items()
            for about in records
        }
        return sorted(one for one in releases if one[0] in self._found and one not in kept)


def installed(resources: Iterable[Mapping[str, Any]]) -> dict[Identity, str]:
    """URNs of the releases in a state."""
    rows = [one for one in resources if one["type"] == _RELEASE and "/" in str(one.get("id"))]
    return {(space, name): one["urn"] for one in rows for space, _, name in [one["id"].partition("/")]}


def settle(
    cluster: ClusterApi,
    found: Collection[PendingRelease],
    report: Callable[[str], None],
    *,
    limit_s: float,
    state: Collection[Identity] = (),
    poll_s: float = _POLL_S,
) -> list[Identity]:
    """Delete the records once their operations have ended: by themselves, or `limit_s` after the last write.

    The provider of a killed engine may still run Helm for that long: without its record it would later roll
    back what the next operation deploys. A rollback that follows a failed upgrade has a record of its own,
    for which this waits too.
    Returns the releases in `state` whose uninstall did not end: the engine has to repeat it.
    Raises UserError where the cluster denies it, or does not respond for `limit_s`.
    """
    halfway: set[Identity] = set()
    while found:
        for one in found:
            if _settle(cluster, one, report, limit_s, poll_s, keep=(one.namespace, one.name) in state):
                halfway.add((one.namespace, one.name))
        found = HelmRecords(cluster, {(one.namespace, one.name) for one in found} - halfway).pending()
    return sorted(halfway)


def _settle(
    cluster: ClusterApi,
    one: PendingRelease,
    report: Callable[[str], None],
    limit_s: float,
    poll_s: float,
    *,
    keep: bool,
) -> bool:
    """Settle one release; return whether an uninstall is to be repeated (`keep`)."""
    gives_up, announced = time.monotonic() + limit_s, False
    while True:
        answer = cluster.get(one.path, _META)
        about = answer.body.get("metadata")
        if answer.status == _OK and about:
            if (about.get("labels") or {}).get("status") != one.status:
                return False
            # A proxy may remove the header Date: then the limit begins now.
            left = gives_up - time.monotonic()
            if answer.date:
                left = limit_s - (answer.date - _written(about)).total_seconds()
            if left <= 0:
                if one.status == UNINSTALLING and keep:
                    report(f"release {one}: its uninstall was interrupted, and is completed first")
                    return True
                if _deleted(cluster, one, about):
                    report(f"release {one}: its operation was interrupted, and starts again")
                    return False
            elif not announced:
                announced = True
                report(f"release {one}: waiting for its end, {left:.0f} s at most")
        elif answer.status == _GONE:
            return False
        elif answer.status == _FORBIDDEN or time.monotonic() >= gives_up:
            raise _unsettled(cluster, one, answer)
        time.sleep(poll_s)


def _written(about: Mapping[str, Any]) -> datetime.datetime:
    """The last write of an object, by the server's clock: an uninstall changes a record of months ago."""
    times = [str(row["time"]) for row in about.get("managedFields") or () if row.get("time")]
    return max(map(datetime.datetime.fromisoformat, [about["creationTimestamp"], *times]))


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def _records(
    cluster: ClusterApi, releases: Collection[Identity], selector: str
) -> dict[str, list[Mapping[str, Any]]]:
    """Metadata of records by namespace, without namespaces in which they cannot be listed."""
    found = {}
    for namespace in sorted({namespace for namespace, _ in releases}):
        with contextlib.suppress(ListRefusedError):
            bodies = listed(cluster, _path(namespace), _LIST, labelSelector=selector)
            found[namespace] = [body["metadata"] for body in bodies]
    return found


def _deleted(cluster: ClusterApi, one: PendingRelease, about: Mapping[str, Any]) -> bool:
    """Delete the record; return False if it has changed since it was read: Helm may have ended just then.

    Before one of an uninstall, older revisions are deleted: the next install would find their name in use.
    """
    if one.status == UNINSTALLING:
        records = _records(cluster, [(one.namespace, one.name)], f"owner=helm,name={one.name}")
        for path in (f"{_path(one.namespace)}/{each['name']}" for each in records.get(one.namespace, ())):
            if path != one.path:
                cluster.send("DELETE", path, {})
    seen = {"uid": about["uid"], "resourceVersion": about["resourceVersion"]}
    answer = cluster.send("DELETE", one.path, {"preconditions": seen})
    if answer.status not in (_OK, _GONE, _CHANGED):
        raise _unsettled(cluster, one, answer)
    return answer.status != _CHANGED


def _unsettled(cluster: ClusterApi, one: PendingRelease, answer: ApiResponse) -> UserError:
    rule = f"{cluster.server} does not allow to read and delete its record: {answer.code}: {answer.message}"
    # Of an install that did not end there is no revision to roll back to, of an uninstall no whole one.
    command = "uninstall" if one.status in ("pending-install", UNINSTALLING) else "rollback"
    fix = f"Run `helm {command} {one.name} --namespace {one.namespace}`, then repeat the command."
    return UserError([Problem(str(one), None, rule, fix, code="release-is-pending")])
