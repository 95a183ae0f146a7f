"""The gate on Vertex AI: two replicas of a rehearsal really train, and what closes it says why."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.jobs.gate import _document
from components.jobs.gate_provider import GateClosedError, JobGateProvider, code_folder
from infra.launchers import bundle, runplan
from infra.launchers.runplan import RunPlan
from rehearsal import service_ports
from tests.rehearsal.jobs.gcp.conftest import PROJECT, REGION, TRAINER, Project

IMAGE = f"us-docker.pkg.dev/{PROJECT}/images/torch@sha256:{'0' * 64}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    found = Project(tmp_path)
    for key, value in service_ports.environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    yield found
    found.services.stop()
    found.state.close()


def props(**changed: Any) -> dict[str, Any]:
    run = RunPlan(
        name="smoke", image=IMAGE, command=(), nodes=2, cpu=4, memory_gib=16, timeout_s=300,
        startup_timeout_s=60, instance_type="e2-standard-4",
        labels={"trainstack:stack": "small", "trainstack:task": "deploy-validation"},
    )  # fmt: skip
    code = bundle.shipped().sha256
    place = {"service_account": TRAINER, "output_uri": "gs://runs-bucket/smoke"}
    plan = {
        "schema": "trainstack.smoke-plan/1", "stack": "small", "nodes": 2, "ranks_per_node": 1,
        "gpus_per_node": 0, "instance_type": "e2-standard-4", "fabric": "tcp", "cloud": "gcp",
        "region": REGION, "profile": "small", "owner": "ml", "team": "research", "cost_center": "ml",
        "hourly_cost_usd": 0.2, "min_scaling_efficiency": 0.05, "max_straggler_slowdown": 20.0,
        "expected_busbw_gb_s": None, "timeout_s": 240, "accept": ["PASS", "INCONCLUSIVE"], "image": IMAGE,
        "code_sha256": code, "dataset": "synthetic", "task": "deploy-validation", "depth": "quick",
        "phases": ["world", "training", "parity", "checkpoint"],
    }  # fmt: skip
    return {
        "service": "vertex",
        "stack": "small",
        "account": PROJECT,
        "region": REGION,
        "run": _document("vertex", run, code, place=place, environment={}, results="gs://runs-bucket/smoke"),
        "plan": json.dumps(plan),
        "scheduled_plan": "",
        "code_sha256": code,
        "code_uri": "gs://code-bucket/code",
        "results_uri": "gs://runs-bucket/smoke",
        "accept": ["PASS", "INCONCLUSIVE"],
        "start_within_s": 60,
        **changed,
    }


def judging(text: str, code: int) -> str:
    """A plan whose command does not train, but leaves this result and ends so."""
    folder = "/gcs/runs-bucket/smoke/$(basename $WORK_DIR)"
    script = f"mkdir -p {folder}; echo '{text}' > {folder}/result.json; exit {code}"
    return runplan.render(replace(runplan.parse(props()["run"]), command=("bash", "-c", script)))


def test_a_job_that_judged_and_passed_opens_the_gate(project: Project) -> None:
    """The command is another one here; the life of `small-gcp` really trains."""
    run = judging('{"verdict": "PASS", "headline": "PASS fast enough"}', 0)
    found = JobGateProvider().create(props(run=run))
    assert found.outs is not None
    assert (found.outs["verdict"], found.outs["headline"]) == ("PASS", "PASS fast enough")
    (job,) = project.ask("GET", f"v1/projects/{PROJECT}/locations/{REGION}/customJobs").json()["customJobs"]
    assert job["displayName"] == found.id and job["labels"]["trainstack-stack"] == "small"
    assert job["jobSpec"]["scheduling"]["disableRetries"] is True
    folder = code_folder(props(run=run)).removeprefix("gs://code-bucket/")
    assert project.file("code-bucket", f"{folder}plan.json").is_file()


def test_a_job_that_fails_before_a_result_shows_where_its_lines_are(project: Project) -> None:
    plan = runplan.parse(props()["run"])
    broken = runplan.render(replace(plan, command=("bash", "-c", "exit 3")))
    with pytest.raises(GateClosedError, match=r"non-zero status of 3.*gcloud logging read 'resource.type"):
        JobGateProvider().create(props(run=broken))


def test_a_job_that_judged_and_failed_reports_the_headline(project: Project) -> None:
    run = judging('{"verdict": "FAIL", "headline": "FAIL too slow"}', 1)
    with pytest.raises(GateClosedError, match=r"FAIL too slow\..*gs://runs-bucket"):
        JobGateProvider().create(props(run=run))
