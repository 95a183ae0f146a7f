"""Wait until the Job of a validation ends and pass its verdict on; runs in a pod of its own.

`pulumi up` waits for the Job that runs this file, and not for the validation's own Job: that one is queued,
and the provider waits forever for a suspended Job (docs/adr/0010). Standard library only. It reads the Job,
its pods and its Kueue Workload every few seconds and changes nothing. Exit codes: 0 the validation passed,
1 it did not, or did not run in time; the verdict is the container's termination message
(`smoke_training.verdict_record`).
"""

import argparse
import sys
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agents.shared.api_server import FORBIDDEN_S, ApiServer, Object, say
from agents.shared.kueue import API, AWAY_NOTE, JOB_UID_LABEL
from smoke_training.verdict_record import VerdictRecord, records

POLL_S = 2.0

End = tuple[bool, VerdictRecord]
"""Whether the validation passed, and its record."""


class ReadDeniedError(Exception):
    """The API server denies access."""


class Reader:
    """Reads objects of one namespace from the API server, as the pod's service account."""

    def __init__(self, namespace: str, server: ApiServer) -> None:
        self._namespace, self._server = namespace, server

    def job(self, name: str) -> Object | None:
        """The Job, None when there is none."""
        return self._get("/apis/batch/v1", f"jobs/{name}")

    def pods(self, job: str) -> Sequence[Object]:
        """The pods of a Job."""
        labels = urllib.parse.quote(f"batch.kubernetes.io/job-name={job}")
        return list((self._get("/api/v1", f"pods?labelSelector={labels}") or {}).get("items") or ())

    def workloads(self, uid: str) -> Sequence[Object]:
        """The Workloads of Kueue for the Job with this uid."""
        labels = urllib.parse.quote(f"{JOB_UID_LABEL}={uid}")
        return list((self._get(API, f"workloads?labelSelector={labels}") or {}).get("items") or ())

    def _get(self, group: str, path: str) -> Object | None:
        """Raises OSError when the server is unreachable or fails, ReadDeniedError when it denies access."""
        place = f"{group}/namespaces/{self._namespace}/{path}"
        status, found = self._server.ask("GET", place)
        if status == 404:
            return None
        if status in (401, 403):
            raise ReadDeniedError(f"{self._server.address}{place}: {status} {found.get('message')}")
        if status != 200:
            raise OSError(f"{self._server.address}{place}: {status} {found.get('message')}")
        return found


@dataclass
class WaitLimits:
    """Time limits of the phases, seconds."""

    queue_s: float
    """In the queue, all waits together."""
    start_s: float
    """From an admission until every pod runs."""
    total_s: float
    """From the beginning to the end."""


@dataclass
class RunWatch:
    """State of one run; `step` takes the current objects and returns the end, once there is one."""

    uid: str
    limits: WaitLimits
    queued_s: float = 0.0
    state: str = "the Job is not there yet"
    _seen: float = field(default=-1.0, repr=False)
    _admitted: float = field(default=-1.0, repr=False)

    def step(
        self, now: float, job: Object | None, pods: Sequence[Object], workloads: Sequence[Object]
    ) -> End | None:
        """The end, as of `now` seconds after the start; None while the run goes on."""
        since, self._seen = (now - self._seen if self._seen >= 0 else 0.0), now
        if job is None:
            ended: End | None = None
            self.state = "the Job does not exist"
        else:
            if job["metadata"]["uid"] != self.uid:
                return _gave_up("the Job was replaced by another one of the same name")
            ended = _ended(job, pods) or self._waiting(now, since, job, pods, workloads)
        if ended is None and now > self.limits.total_s:
            return _gave_up(f"it did not end within {self.limits.total_s:.0f} s: {self.state}")
        return ended

    def _waiting(
        self, now: float, since: float, job: Object, pods: Sequence[Object], workloads: Sequence[Object]
    ) -> End | None:
        if job["spec"].get("suspend"):
            self.queued_s, self._admitted = self.queued_s + since, -1.0
            self.state = f"it is suspended: {_why_queued(workloads)}"
            if self.queued_s > self.limits.queue_s:
                more = "It stays in its queue; `up` runs it again."
                return _gave_up(f"not admitted within {self.limits.queue_s:.0f} s: {self.state}. {more}")
            return None
        if self._admitted < 0:
            self._admitted = now
        late = _not_running(job, pods)
        self.state = f"pods do not run: {late}" if late else "its pods run"
        if not late:
            self._admitted = now
        elif now - self._admitted > self.limits.start_s:
            return _gave_up(f"its pods did not start within {self.limits.start_s:.0f} s: {late}")
        return None


def _gave_up(reason: str) -> End:
    return False, VerdictRecord("ERROR", reason)


def _ended(job: Object, pods: Sequence[Object]) -> End | None:
    conditions = {row["type"]: row for row in (job.get("status") or {}).get("conditions") or ()}
    if conditions.get("Complete", {}).get("status") == "True":
        return True, _record("PASS", "passed", pods)
    failed = conditions.get("Failed", {})
    if failed.get("status") != "True":
        return None
    # The record of the first pod that failed has more facts than the count of all that did.
    reason = f"[{failed.get('reason')}] {failed.get('message')}"
    found = _record("ERROR", reason, pods)
    return False, found if found.message == reason else replace(found, details=(*found.details, reason))


def _record(verdict: str, message: str, pods: Sequence[Object]) -> VerdictRecord:
    """The record of the first pod that left one; else `verdict`, with the first text that a pod left."""
    texts = _messages(pods)
    for text in texts:
        for found in records(text):
            return found
    lines = [line for line in "".join(texts[:1]).splitlines() if line.strip()] or [message]
    return VerdictRecord(verdict, lines[0], details=tuple(lines[1:]))


def _messages(pods: Sequence[Object]) -> list[str]:
    """Termination messages: of containers that failed first, in the order of their index."""
    found = []
    for pod in pods:
        index = (pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index")
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = (container.get("state") or {}).get("terminated") or {}
            if ended.get("message"):
                found.append((ended.get("exitCode") == 0, int(index or 0), str(ended["message"]).strip()))
    return [text for _, _, text in sorted(found)]


def _not_running(job: Object, pods: Sequence[Object]) -> str:
    """Reason why not all pods of an admitted Job run yet; empty when they do or did."""
    wanted = int(job["spec"].get("parallelism") or 1)
    started = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in (None, "Pending")]
    if len(started) >= wanted:
        return ""
    reasons = [reason for pod in pods if (reason := _pending(pod))]
    return f"{len(started)} of {wanted} started" + "".join(f"; {text}" for text in sorted(set(reasons))[:3])


def _pending(pod: Object) -> str:
    status = pod.get("status") or {}
    if status.get("phase") != "Pending":
        return ""
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"[{waiting['reason']}] {waiting.get('message', '')}".strip()
    for row in status.get("conditions") or ():
        if row["type"] == "PodScheduled" and row["status"] == "False":
            return f"[{row.get('reason')}] {row.get('message')}"
    return ""


def _why_queued(workloads: Sequence[Object]) -> str:
    """The reason of Kueue: no quota, evicted, or no Workload."""
    if not workloads:
        return "Kueue has made no Workload for it; is its controller running, and does the queue exist?"
    if away := ((workloads[0].get("metadata") or {}).get("annotations") or {}).get(AWAY_NOTE):
        return f"its pool takes no jobs now: {away}"
    conditions = {row["type"]: row for row in (workloads[0].get("status") or {}).get("conditions") or ()}
    for kind, bad in (("QuotaReserved", "False"), ("Admitted", "False"), ("Evicted", "True")):
        row = conditions.get(kind)
        if row and row["status"] == bad:
            return f"[{row.get('reason')}] {row.get('message')}"
    return "Kueue has not looked at it yet"


def watch(reader: Reader, job: str, run: RunWatch, log: Callable[[str], None]) -> End:
    """Poll until the Job has ended."""
    began, logged, allowed = time.monotonic(), "", 0.0
    while True:
        now = time.monotonic() - began
        denied = False
        try:
            found = reader.job(job)
            uid = found["metadata"]["uid"] if found else ""
            suspended = bool(found and found["spec"].get("suspend"))
            ended = run.step(now, found, reader.pods(job), reader.workloads(uid) if suspended else ())
        except ReadDeniedError as error:
            run.state, ended, denied = f"the API server denies access: {error}", None, True
        except OSError as error:
            # An API server during an upgrade is unavailable for a while.
            run.state, ended = f"the API server cannot be reached: {error}", None
            if now > run.limits.total_s:
                ended = _gave_up(f"it did not end within {run.limits.total_s:.0f} s: {run.state}")
        if ended is not None:
            return ended
        if not denied:
            allowed = now
        elif now >= allowed + FORBIDDEN_S:
            return _gave_up(run.state)
        if run.state != logged:
            logged = run.state
            log(f"{now:5.0f} s: {logged}")
        time.sleep(POLL_S)


def main() -> int:
    """Watch the Job of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("namespace", "job", "uid", "pool"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("queue", "start", "total"):
        parser.add_argument(f"--{name}-seconds", type=float, required=True)
    for name in ("account", "message"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    asked = parser.parse_args()
    limits = WaitLimits(asked.queue_seconds, asked.start_seconds, asked.total_seconds)
    reader = Reader(asked.namespace, ApiServer(asked.account))
    passed, found = watch(reader, asked.job, RunWatch(asked.uid, limits), say)
    record = replace(found, run=f"{asked.namespace}/{asked.job}", pool=asked.pool)
    say(record.text)
    asked.message.write_text(record.line(), encoding="utf-8")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
