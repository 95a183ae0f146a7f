"""Cloud Scheduler: jobs.run, which starts a job with an HTTP target at once.

Nothing starts by schedule in a rehearsal. A job's request is sent before the response of jobs.run; the
service sends it afterwards. Source: Cloud Scheduler API v1 (projects.locations.jobs.run, Job, HttpTarget);
debugInfo and fields of log entries are from public repositories.
"""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Content, Method, ServiceError
from rehearsal.dataplane.gcp.iam_bindings import allowed
from rehearsal.dataplane.gcp.identity import GoogleIdentities

# Document space: log entries of attempts by id of the job.
ATTEMPTS = "cloud-scheduler-attempt"
_JOB = "gcp:cloudscheduler/job:Job"
_OF_GOOGLE = ".googleapis.com"
_WHY = {401: "AUTHENTICATION", 404: "NOT_FOUND"}
_TYPE = "type.googleapis.com/google.cloud.scheduler.logging.AttemptFinished"
_CODES = {"INVALID_ARGUMENT": 3, "NOT_FOUND": 5, "PERMISSION_DENIED": 7, "UNAUTHENTICATED": 16}

Send = Callable[[str, str, bytes, Mapping[str, str]], Answer | Content]
"""Sends a request to the APIs of the rehearsal: verb, path with query, body, headers. Raises ServiceError."""


class CloudScheduler:
    """See `http.Api`."""

    def __init__(self, state: State, identities: GoogleIdentities, send: Send) -> None:
        self._state, self._identities, self._send = state, identities, send

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        path = r"v1/(?P<job>projects/[^/]+/locations/[^/]+/jobs/[^/:]+):run"
        return (Method("POST", path, self._run),)

    def _run(self, call: ApiCall) -> Answer:
        name = call.parts["job"]
        job = next((one for one in self._state.find(type=_JOB) if one.id == name), None)
        if job is None:
            raise ServiceError(404, "Job not found.")
        if not allowed(self._state, call.caller.members, "cloudscheduler.jobs.run", job, name):
            problem = "The principal (user or service account) lacks IAM permission"
            raise ServiceError(403, f'{problem} "cloudscheduler.jobs.run" for the resource "{name}".')
        refused = self._attempt(job)
        known = {key: job.outputs.get(key) for key in ("schedule", "timeZone", "state", "httpTarget")}
        status = {"status": {"code": _CODES.get(refused.code, 2)}} if refused else {}
        return {"name": name, **known, "lastAttemptTime": _moment(time.time()), **status}

    def _attempt(self, job: Record) -> ServiceError | None:
        """Send the request of a job and log the outcome; returns the error, if any."""
        target: Mapping[str, Any] = job.inputs.get("httpTarget") or {}
        parts = urlsplit(str(target.get("uri")))
        if not (parts.hostname or "").endswith(_OF_GOOGLE):
            raise ServiceError(400, "A rehearsal calls APIs of Google only.")
        headers = {key.lower(): str(value) for key, value in (target.get("headers") or {}).items()}
        if account := (target.get("oauthToken") or {}).get("serviceAccountEmail"):
            headers["authorization"] = f"Bearer {self._identities.account(str(account))}"
        body = base64.b64decode(target.get("body") or "")
        refused = None
        try:
            self._send(str(target.get("httpMethod") or "POST"), parts.path, body, headers)
        except ServiceError as error:
            refused = error
        self._log(job, str(target["uri"]), refused)
        return refused

    def _log(self, job: Record, url: str, refused: ServiceError | None) -> None:
        status = refused.status if refused else 200
        crawled = f"URL_ERROR-ERROR_{_WHY.get(status, 'OTHER')}" if refused else "URL_CRAWLED"
        entry = {
            "at": _moment(time.time()),
            "severity": "ERROR" if refused else "INFO",
            "http_status": status,
            "payload": {
                "@type": _TYPE,
                "jobName": job.id,
                "targetType": "HTTP",
                "url": url,
                "debugInfo": f"{crawled}. Original HTTP response code number = {status}",
                **({"status": refused.code} if refused else {}),
            },
        }
        with self._state.transaction():
            kept = [*(self._state.document(ATTEMPTS, job.id) or ()), entry]
            self._state.put_document(ATTEMPTS, job.id, kept)


def entries(state: State, project: str) -> list[dict[str, Any]]:
    """Log entries of the jobs of a project."""
    found = []
    for name, kept in state.documents(ATTEMPTS).items():
        _, owner, _, location, _, job = name.split("/")
        labels = {"project_id": project, "location": location, "job_id": job}
        for number, one in enumerate(kept) if owner == project else ():
            found.append(
                {
                    "insertId": f"{job}-{number:09d}",
                    "logName": f"projects/{project}/logs/cloudscheduler.googleapis.com%2Fexecutions",
                    "resource": {"type": "cloud_scheduler_job", "labels": labels},
                    "timestamp": one["at"],
                    "receiveTimestamp": one["at"],
                    "severity": one["severity"],
                    "httpRequest": {"status": one["http_status"]},
                    "jsonPayload": one["payload"],
                }
            )
    return found


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
