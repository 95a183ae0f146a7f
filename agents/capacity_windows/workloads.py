"""Client of Kueue's Workloads for the controller of windows; standard library only."""

from collections.abc import Container, Iterator, Sequence
from datetime import datetime

from agents.shared.api_server import ApiServer, ApiServerError, Object, say
from agents.shared.events import event
from agents.shared.jobs import controller, path
from agents.shared.kueue import API, AWAY_NOTE, VERSION
from agents.shared.times import stamp

PENDING, READY = "Pending", "Ready"  # states of a check (apis/kueue/v1beta2/workload_types.go)
_ALL = f"{API}/workloads"
_GONE, _CONFLICT = 404, 409


def is_reserved(workload: Object) -> bool:
    """Return whether a job has quota that it keeps."""
    rows = (workload.get("status") or {}).get("conditions") or ()
    true_conditions = {row["type"] for row in rows if row["status"] == "True"}
    gone = true_conditions & {"Finished", "Evicted"} or not workload["spec"].get("active", True)
    return "QuotaReserved" in true_conditions and not gone


def is_away(workload: Object) -> bool:
    """Return whether the controller deactivated a job that was not activated since."""
    notes = workload["metadata"].get("annotations") or {}
    return AWAY_NOTE in notes and not workload["spec"].get("active", True)


def sent_away_by(workload: Object) -> str:
    """The check that deactivated a job."""
    return str(workload["metadata"]["annotations"][AWAY_NOTE]).partition(":")[0]


def check_of(workload: Object, names: Container[str]) -> Object | None:
    """The state of the first of a job's checks with one of these names."""
    rows = (workload.get("status") or {}).get("admissionChecks") or ()
    return next((row for row in rows if row["name"] in names), None)


def called(workload: Object) -> str:
    """Namespace and name of a job."""
    owner = controller(workload["metadata"]) or workload["metadata"]
    return f"{workload['metadata']['namespace']}/{owner['name']}"


class Workloads:
    """The Workloads of a cluster. Every method raises ApiServerError and OSError as `ApiServer` does."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def paged(self) -> Iterator[tuple[Sequence[Object], str]]:
        """All Workloads, one page at a time, each with the version from which to watch."""
        return self._server.paged(_ALL)

    def watched(self, version: str, seconds: float) -> Iterator[Object]:
        """Changes since a version, for `seconds`."""
        return self._server.watched(_ALL, version, seconds)

    def activate_check(self, name: str, now: datetime) -> None:
        """Mark an AdmissionCheck as active; its queues are inactive until then."""
        place = f"{API}/admissionchecks/{name}"
        found = self._server.must("GET", place)
        rows = (found.get("status") or {}).get("conditions") or ()
        if not any(row["type"] == "Active" and row["status"] == "True" for row in rows):
            active = {
                "type": "Active",
                "status": "True",
                "reason": "Active",
                "message": "The controller of the pool's windows runs",
                "observedGeneration": found["metadata"]["generation"],
                "lastTransitionTime": stamp(now.timestamp()),
            }
            self._server.must("PATCH", f"{place}/status", {"status": {"conditions": [active]}})

    def owner(self, workload: Object) -> Object | None:
        """The Job, JobSet, TrainJob or Pod of a Workload; None when it is gone or of another kind."""
        owner = controller(workload["metadata"])
        if owner is None:
            return None
        place = path(owner["kind"], workload["metadata"]["namespace"], owner["name"])
        status, found = self._server.ask("GET", place)
        if status == _GONE:
            return None
        if status != 200:
            raise ApiServerError(status, str(found.get("message")))
        return found

    def ready(self, workload: Object, check: str, words: str, now: datetime) -> bool:
        """Set a check of a job to Ready; False when the Workload was changed meanwhile."""
        at = stamp(now.timestamp())
        state = {"name": check, "state": READY, "message": words, "lastTransitionTime": at}
        rows = [state if row["name"] == check else row for row in workload["status"]["admissionChecks"]]
        return self._patch(workload, "/status", {"status": {"admissionChecks": rows}})

    def send_away(self, workload: Object, check: str, words: str, now: datetime) -> bool:
        """Deactivate a job: stop it, or prevent its start, until `call_back`; False as `ready`."""
        done = self._patch(workload, "", _activity(f"{check}: {words}"))
        if done:
            self._report(workload, words, now)
        return done

    def call_back(self, workload: Object) -> bool:
        """Activate a deactivated job; False when it was changed meanwhile."""
        return self._patch(workload, "", _activity(None))

    def _patch(self, workload: Object, part: str, change: Object) -> bool:
        metadata = workload["metadata"]
        place = f"{API}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}{part}"
        # Applies to the version that was read only.
        known = {**change.get("metadata", {}), "resourceVersion": metadata["resourceVersion"]}
        try:
            self._server.must("PATCH", place, {**change, "metadata": known})
        except ApiServerError as error:
            if error.status not in (_GONE, _CONFLICT):
                raise
            return False
        return True

    def _report(self, workload: Object, words: str, now: datetime) -> None:
        """Report the reason as an event of the Job."""
        metadata = workload["metadata"]
        about = controller(metadata) or {"apiVersion": VERSION, "kind": "Workload", **metadata}
        body = event(
            about,
            metadata["namespace"],
            reason="PoolClosed",
            words=words,
            kind="Warning",
            by="capacity-keeper",
            at=now.timestamp(),
        )
        status, found = self._server.ask("POST", f"/api/v1/namespaces/{metadata['namespace']}/events", body)
        if status >= 300:
            # An event is for users: a failure, such as of a namespace that is deleted, stops nothing.
            say(f"no event PoolClosed in {metadata['namespace']}: {status} {found.get('message')}")


def _activity(away: str | None) -> Object:
    """The change that deactivates a Workload with the reason `away`, or activates it."""
    return {"spec": {"active": away is None}, "metadata": {"annotations": {AWAY_NOTE: away}}}
