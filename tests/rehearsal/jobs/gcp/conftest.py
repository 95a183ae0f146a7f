"""A project with buckets and accounts for jobs, and the services of a rehearsal in this process."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests

from rehearsal import service_ports
from rehearsal.core.fault_injection import FaultPlan
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.jobs.services import EmulatedServices

PROJECT, REGION = "research", "us-central1"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
ADA = f"ada@{PROJECT}.iam.gserviceaccount.com"
BUCKETS = ("code-bucket", "runs-bucket")
OVER = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}
_PARENT = f"v1/projects/{PROJECT}/locations/{REGION}/customJobs"


class Project:
    """Adds resources to the state as the emulated Google Cloud would, and calls the APIs by HTTP."""

    def __init__(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self.home, self.state = home, State(home / "state.sqlite")
        service_ports.environment(home)  # writes the login
        self.services = EmulatedServices(self.state, home, FaultPlan(home / "faults.json"))
        self.url = service_ports.url(home, "gcp")
        for name in BUCKETS:
            self.add("storage/bucket:Bucket", name, {"name": name}, name=name)
        for email in (TRAINER, ADA):
            self.add("serviceaccount/account:Account", email, {}, email=email)
        self.grant("roles/storage.objectAdmin", TRAINER)

    def add(self, type: str, id: str, inputs: dict[str, Any], **outputs: Any) -> Record:
        """A resource that exists."""
        record = self.state.insert(
            package="gcp", type=f"gcp:{type}", scope=PROJECT, id=id, urn=id, name=id, inputs=inputs,
            outputs={"project": PROJECT, **outputs},
        )  # fmt: skip
        self.state.issue(record, {id})
        return record

    def grant(self, role: str, email: str, **more: Any) -> None:
        """A binding of the project."""
        member = f"serviceAccount:{email}"
        self.add("projects/iAMMember:IAMMember", f"{role}/{email}", {"role": role, "member": member, **more})

    def token(self, email: str) -> str:
        """A token of an account, as the metadata server would give it to a program."""
        return self.services.google.identities.account(email)

    def ask(
        self, verb: str, path: str, body: Any = None, *, by: str | None = None, data: bytes | None = None
    ) -> requests.Response:
        """One request of an account, or of the user of the rehearsal."""
        token = self.token(by) if by else self.operator()
        headers = {"Authorization": f"Bearer {token}"}
        return requests.request(verb, f"{self.url}/{path}", json=body, data=data, headers=headers, timeout=10)

    def operator(self) -> str:
        """A token of the user of the rehearsal."""
        form = {"grant_type": "refresh_token", "refresh_token": "rehearsal"}
        answer = requests.post(f"{self.url}{service_ports.LOGIN_PATH}", data=form, timeout=10)
        return str(answer.json()["access_token"])

    def file(self, bucket: str, key: str) -> Path:
        """Path of an object on disk."""
        return folders.bucket(self.home, bucket, "gs") / key

    def put(self, bucket: str, name: str, content: bytes, **more: Any) -> requests.Response:
        """Upload an object."""
        query = f"uploadType=media&name={quote(name, safe='')}"
        return self.ask("POST", f"upload/storage/v1/b/{bucket}/o?{query}", data=content, **more)

    def faults(self, **content: Any) -> None:
        """Faults of the next jobs, and of one that runs, as `Rehearsal.set_faults` writes them."""
        import json

        new = self.home / "faults.new"
        new.write_text(json.dumps(content))
        new.replace(self.home / "faults.json")  # never read in part

    def create(self, script: str = "true", *, by: str | None = None, **more: Any) -> requests.Response:
        """Request a job that runs a script with bash."""
        return self.ask("POST", _PARENT, request(script, **more), by=by)

    def start(self, script: str = "true", **more: Any) -> str:
        """Start a job; its name."""
        answer = self.create(script, **more)
        assert answer.ok, answer.text
        return str(answer.json()["name"])

    def job(self, name: str) -> dict[str, Any]:
        """A job as the API describes it."""
        found: dict[str, Any] = self.ask("GET", f"v1/{name}").json()
        return found

    def reached(self, name: str, wanted: set[str], patience_s: float = 30.0) -> dict[str, Any]:
        """The description of a job once it is in one of these states."""
        deadline = time.monotonic() + patience_s
        while True:
            found = self.job(name)
            if found["state"] in wanted:
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def run(self, script: str = "true", **more: Any) -> dict[str, Any]:
        """Run a job to its end."""
        return self.reached(self.start(script, **more), OVER)

    def entries(self, name: str, more: str = "", **asked: Any) -> list[dict[str, Any]]:
        """What Cloud Logging has of a job."""
        wanted = f'resource.type="ml_job" AND resource.labels.job_id="{name.rpartition("/")[2]}"{more}'
        body = {"resourceNames": [f"projects/{PROJECT}"], "filter": wanted, "pageSize": 1000, **asked}
        answer = self.ask("POST", "v2/entries:list", body)
        assert answer.ok, answer.text
        return list(answer.json().get("entries") or ())

    def lines(self, name: str, task: str = "workerpool0-0") -> list[str]:
        """What a replica of a job wrote."""
        found = self.entries(name, f' AND resource.labels.task_name="{task}"')
        return [one["jsonPayload"]["message"] for one in found]


def pool(script: str, count: int = 1, machine: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A worker pool whose containers run a script with bash."""
    return {
        "machineSpec": dict(machine or {"machineType": "e2-standard-4"}),
        "replicaCount": count,
        "containerSpec": {
            "imageUri": f"us-docker.pkg.dev/{PROJECT}/images/train@sha256:{'0' * 64}",
            "command": ["bash", "-c", 'eval "$START"'],
            "env": [{"name": "START", "value": script}],
        },
    }


def request(
    script: str = "true",
    *,
    name: str = "job-1",
    workers: int = 0,
    machine: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    scheduling: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A CustomJob; `spec` are more fields of its jobSpec."""
    pools = [pool(script, 1, machine), *([pool(script, workers, machine)] if workers else [])]
    more = {"scheduling": dict(scheduling)} if scheduling else {}
    return {
        "displayName": name,
        "jobSpec": {"workerPoolSpecs": pools, "serviceAccount": TRAINER, **more, **spec},
        **({"labels": dict(labels)} if labels else {}),
    }


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    found = Project(tmp_path)
    yield found
    found.services.stop()
    found.state.close()
