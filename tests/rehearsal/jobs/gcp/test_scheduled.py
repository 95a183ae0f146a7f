"""A scheduled validation, started by the emulated Cloud Scheduler, and its alerts."""

import base64
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pulumi
import pytest
import requests

from components.gcp.alerts.alert_lines import lines_of_jobs
from components.gcp.jobs.schedule import GcpJobSchedule, GcpJobScheduleArgs
from components.jobs.gate_provider import stem, validated
from infra.jobs.service import JobPhase, JobState
from infra.launchers import runplan
from tests.components.graph import Graph, deploy_graph
from tests.components.jobs import scripted, test_gate_vertex
from tests.components.jobs.scripted import Scripted
from tests.rehearsal.jobs.gcp.conftest import OVER, PROJECT, REGION, TRAINER, Project

STARTER = f"dev-again@{PROJECT}.iam.gserviceaccount.com"
JOB = f"projects/{PROJECT}/locations/{REGION}/jobs/dev-again-job"
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
KEEP = (
    "D=/gcs/runs-bucket/smoke/$(basename $WORK_DIR); mkdir -p $D; touch $D/$NODE_RANK; "
    "until [ -e $D/0 -a -e $D/1 ]; do sleep 0.05; done"
)
"""What each replica does: it waits for the other one in the folder that it takes for the job's."""


def passed(script: str) -> str:
    """The request of a scheduled validation of two replicas that run a script, from the gate's output."""
    plan = runplan.parse(test_gate_vertex.props()["run"])
    run = runplan.render(replace(plan, command=("bash", "-c", script)))
    wanted = test_gate_vertex.props(run=run, scheduled_plan="{}", account=scripted.ACCOUNT)
    name = f"{stem(wanted)}{NOW:%y%m%d%H%M%S}"
    service = Scripted([scripted.job(JobState.COMPLETED, JobPhase.OVER, name=name)])
    service.objects[f"{wanted['results_uri']}/{name}/result.json"] = b'{"verdict": "PASS", "headline": ""}'
    return str(validated(wanted, service, service.clock, lambda: NOW)["scheduled"])


def declared(script: str = "true") -> Graph:
    args: GcpJobScheduleArgs = {
        "project": PROJECT,
        "region": REGION,
        "stack": "dev",
        "schedule": "0 5 * * 1",
        "request": passed(script),
        "account": TRAINER,
        "channels": ["ops"],
    }

    def program() -> dict[str, pulumi.Output[str]]:
        return {"name": GcpJobSchedule("dev-again", args).name}

    return deploy_graph(
        program,
        {
            "gcp:serviceaccount/account:Account": lambda args: {
                "email": f"{args.inputs['accountId']}@{PROJECT}.iam.gserviceaccount.com",
                "member": f"serviceAccount:{args.inputs['accountId']}@{PROJECT}.iam.gserviceaccount.com",
            },
            "gcp:projects/iAMCustomRole:IAMCustomRole": lambda args: {
                "name": f"projects/{PROJECT}/roles/{args.inputs['roleId']}"
            },
        },
    )


def deployed(project: Project, graph: Graph, *, rights: bool = True) -> None:
    """What the component asks for, in the emulated project."""
    project.add("serviceaccount/account:Account", STARTER, {}, email=STARTER)
    project.add("cloudscheduler/job:Job", JOB, dict(graph.find("cloudscheduler/job:Job")))
    if not rights:
        return
    role = graph.find("IAMCustomRole")
    name = f"projects/{PROJECT}/roles/{role['roleId']}"
    project.add("projects/iAMCustomRole:IAMCustomRole", name, dict(role), name=name)
    project.add("projects/iAMMember:IAMMember", "starts", dict(graph.find("projects/iAMMember:IAMMember")))
    acts = dict(graph.find("serviceaccount/iAMMember:IAMMember"))
    assert acts["serviceAccountId"] == f"projects/{PROJECT}/serviceAccounts/{TRAINER}"
    account = next(one for one in project.state.issued(TRAINER))
    project.state.issue(account, {TRAINER, acts["serviceAccountId"]})
    bound = project.add("serviceaccount/iAMMember:IAMMember", "acts", acts)
    project.state.refer(bound, {"serviceAccountId": account})


def run(project: Project) -> requests.Response:
    return project.ask("POST", f"v1/{JOB}:run")


def jobs(project: Project) -> list[dict[str, Any]]:
    parent = f"v1/projects/{PROJECT}/locations/{REGION}/customJobs"
    return list(project.ask("GET", parent).json().get("customJobs") or ())


def logged(project: Project, wanted: str) -> list[dict[str, Any]]:
    """The entries that match a log-based alert policy."""
    body = {"resourceNames": [f"projects/{PROJECT}"], "filter": wanted}
    answer = project.ask("POST", "v2/entries:list", body)
    assert answer.ok, answer.text
    return list(answer.json().get("entries") or ())


def match_condition(graph: Graph) -> dict[str, Any]:
    (condition,) = graph.find("monitoring/alertPolicy:AlertPolicy")["conditions"]
    return dict(condition["conditionMatchedLog"])


def test_two_starts_are_two_jobs_with_a_folder_each_that_all_replicas_agree_on(project: Project) -> None:
    graph = declared(KEEP)
    deployed(project, graph)
    # The script uses the mount, which needs a role on all of the bucket; the start brings some code.
    writes = {
        "bucket": "runs-bucket",
        "role": "roles/storage.objectUser",
        "member": f"serviceAccount:{TRAINER}",
    }
    bound = project.add("storage/bucketIAMMember:BucketIAMMember", "writes", writes)
    project.state.refer(bound, {"bucket": project.state.find(id="runs-bucket")[0]})
    request = base64.b64decode(graph.find("cloudscheduler/job:Job")["httpTarget"]["body"]).decode()
    code = re.search("gs://code-bucket/(code/[a-z0-9-]+)", request)
    assert code
    project.put("code-bucket", f"{code[1]}/any.txt", b"")
    for _ in range(2):
        answer = run(project).json()
        assert "status" not in answer, answer
    for one in jobs(project):
        found = project.reached(one["name"], OVER)
        assert found["state"] == "JOB_STATE_SUCCEEDED", found
        assert found["displayName"] == "smoke-scheduled"
        assert project.file(
            "runs-bucket", f"smoke/smoke-scheduled-{found['name'].rpartition('/')[2]}"
        ).is_dir()
    assert len({one["name"] for one in jobs(project)}) == 2
    assert len([*project.file("runs-bucket", "smoke").iterdir()]) == 2
    assert logged(project, match_condition(graph)["filter"]) == []


def test_a_refused_start_creates_no_job_and_matches_the_alert_policy(project: Project) -> None:
    graph = declared()
    deployed(project, graph, rights=False)
    assert run(project).json()["status"] == {"code": 7}
    assert jobs(project) == []
    (entry,) = logged(project, match_condition(graph)["filter"])
    assert entry["httpRequest"]["status"] == 403
    assert match_condition(graph)["labelExtractors"] == {"status": "EXTRACT(jsonPayload.status)"}
    assert entry["jsonPayload"]["status"] == "PERMISSION_DENIED"


def test_the_schedule_may_start_the_validation_only(project: Project) -> None:
    graph = declared()
    deployed(project, graph)
    other = json.loads(passed("true"))
    other["jobSpec"]["serviceAccount"] = "ada@research.iam.gserviceaccount.com"
    answer = project.ask("POST", f"v1/projects/{PROJECT}/locations/{REGION}/customJobs", other, by=STARTER)
    assert answer.status_code == 400 and "act as service_account" in answer.text
    assert (
        project.ask("GET", f"v1/projects/{PROJECT}/locations/{REGION}/customJobs", by=STARTER).status_code
        == 403
    )
    assert project.ask("POST", f"v1/{JOB}:run", by=STARTER).status_code == 403


def alert(subject: str) -> str:
    """A line as `smoke_training.runtime.output.emit` writes it."""
    return json.dumps(
        {"event": "alert", "at": "now", "sent": True, "reason": "", "subject": subject, "text": "so"}
    )


@pytest.mark.parametrize(
    ("line", "mailed"),
    [
        (alert("dev: scheduled validation, verdict FAIL"), True),
        (alert("other-dev: scheduled validation, verdict FAIL"), False),
        (json.dumps({"event": "alert", "at": "now", "sent": False, "reason": "nothing to report"}), False),
        (json.dumps({"event": "verdict", "subject": "dev: scheduled validation"}), False),
    ],
)
def test_a_line_about_the_stacks_validation_is_mailed_whatever_else_jobs_say(
    project: Project, line: str, mailed: bool
) -> None:
    found = project.run(f"echo '{line}'")
    assert found["state"] == "JOB_STATE_SUCCEEDED"
    assert len(logged(project, str(lines_of_jobs(PROJECT, "dev")["filter"]))) == mailed


def test_missing_resources_and_foreign_urls_are_reported(project: Project) -> None:
    assert run(project).status_code == 404
    elsewhere = {"schedule": "0 5 * * 1", "httpTarget": {"uri": "https://example.com/hook"}}
    project.add("cloudscheduler/job:Job", JOB, elsewhere)
    assert "Google only" in run(project).json()["error"]["message"]
