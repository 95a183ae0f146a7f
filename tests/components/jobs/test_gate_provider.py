"""The gate without a cluster: what opens it, what closes it, and when it runs again."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from components.jobs.gate import _document
from components.jobs.gate_provider import (
    INPUTS,
    SCHEDULED,
    GateClosedError,
    JobGateProvider,
    code_folder,
    stem,
    validated,
)
from components.jobs.waiting import JobError
from infra.jobs.service import JobPhase, JobState
from infra.launchers import bundle, runplan
from infra.launchers.aws import sagemaker
from infra.launchers.runplan import RunPlan, SageMakerOptions
from infra.launchers.validation import ValidationFiles, validation
from smoke_training.verdict_record import LIMIT_VARIABLE
from tests.components.jobs.scripted import ACCOUNT, Scripted, job

ROLE = f"arn:aws:iam::{ACCOUNT}:role/jobs"


def props(**changed: Any) -> dict[str, Any]:
    run = RunPlan(
        name="smoke", image="registry.example/torch@sha256:" + "0" * 64, command=(), nodes=2, cpu=4,
        memory_gib=16, timeout_s=900, instance_type="g6.xlarge",
        sagemaker=SageMakerOptions(role_arn=ROLE, output_uri="s3://artifacts/smoke"),
    )  # fmt: skip
    return {
        "service": "sagemaker",
        "stack": "small",
        "account": ACCOUNT,
        "region": "us-east-1",
        "run": runplan.render(validation(run, ValidationFiles(code="/opt/ml/input/data/code"))),
        "plan": json.dumps({"stack": "small"}),
        "scheduled_plan": "",
        "code_sha256": bundle.shipped().sha256,
        "code_uri": "s3://artifacts/code",
        "results_uri": "s3://checkpoints/smoke",
        "accept": ["PASS"],
        "start_within_s": 600,
        **changed,
    }


NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
NAME = f"{stem(props())}261126120000"
RESULT = f"s3://checkpoints/smoke/{NAME}/result.json"


def service(verdict: str | None, **ended: Any) -> Scripted:
    over = {"state": JobState.COMPLETED, "phase": JobPhase.OVER, "billed_s": 90, "name": NAME, **ended}
    made = Scripted([job(), job(**over)])
    if verdict is not None:
        made.objects[RESULT] = json.dumps({"verdict": verdict, "headline": f"{verdict} so"}).encode()
    return made


def ran(found: Scripted, **changed: Any) -> dict[str, Any]:
    return validated(props(**changed), found, found.clock, lambda: NOW)


def test_a_verdict_that_opens_the_gate_is_returned_with_the_billed_time() -> None:
    found = service("PASS")
    assert ran(found) == {
        "job": NAME, "result_uri": RESULT, "billed_s": 180, "scheduled": None, "verdict": "PASS",
        "headline": "PASS so",
    }  # fmt: skip
    (plan,) = found.submitted
    request = sagemaker.training_job(plan)
    assert request["TrainingJobName"] == NAME
    (channel,) = request["InputDataConfig"]
    folder = channel["DataSource"]["S3DataSource"]["S3Uri"]
    assert folder == code_folder(props())
    assert found.objects[f"{folder}plan.json"] == props()["plan"].encode()
    assert found.objects[f"{folder}smoke_training.zip"] == bundle.shipped().content


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (service("INCONCLUSIVE"), r"INCONCLUSIVE so\. The gate opens for PASS"),
        (service(None), "holds no result"),
        (service(None, state=JobState.FAILED, reason="FAIL scaling_efficiency 0.4"), "failed. FAIL scaling"),
        (service("PASS", state=JobState.STOPPED), "stopped by a user"),
    ],
)
def test_everything_else_closes_it(found: Scripted, words: str) -> None:
    with pytest.raises(GateClosedError, match=words):
        ran(found)


def test_a_run_that_an_interrupted_deploy_left_is_waited_for_and_none_is_started() -> None:
    found = service("PASS")
    found.listed = [
        job(JobState.FAILED, JobPhase.OVER, name=f"{stem(props())}1"),
        job(name="another"),
        job(name=NAME),
    ]
    assert ran(found)["job"] == NAME
    assert found.submitted == []


def test_nothing_is_started_in_another_account_or_of_other_code() -> None:
    found = service("PASS")
    with pytest.raises(JobError, match="999999999999"):
        ran(found, account="999999999999")
    with pytest.raises(JobError, match="changed while"):
        ran(found, code_sha256="0" * 64)
    assert found.submitted == [] and list(found.objects) == [RESULT]


def test_a_repetition_has_a_request_and_a_plan_of_its_own() -> None:
    found = service("PASS")
    name = f"{stem(props(scheduled_plan='{}'))}261126120000"
    found.objects[RESULT.replace(NAME, name)] = found.objects[RESULT]
    request = json.loads(ran(found, scheduled_plan="{}")["scheduled"])
    assert request["TrainingJobName"] == SCHEDULED
    assert request["AlgorithmSpecification"]["ContainerArguments"][-1].endswith("/code/scheduled.json")
    assert request["Environment"]["WORK_DIR"].endswith(f"/{SCHEDULED}")
    (channel,) = request["InputDataConfig"]
    folder = channel["DataSource"]["S3DataSource"]["S3Uri"]
    assert found.objects[f"{folder}scheduled.json"] == b"{}"


def test_a_job_of_sagemaker_leaves_a_record_that_fits_the_reason_of_its_failure() -> None:
    place = {"role_arn": ROLE, "output_uri": "s3://artifacts/smoke"}
    run = runplan.parse(props()["run"])
    made = _document(
        "sagemaker", run, "0" * 64, place=place, environment={}, results="s3://checkpoints/smoke"
    )
    found = runplan.parse(made).env
    assert found["TERMINATION_MESSAGE_PATH"] == "/opt/ml/output/failure"
    assert int(found[LIMIT_VARIABLE]) + len("AlgorithmError: , exit code: 1") < 1024


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_that_changes_validates_again(name: str) -> None:
    before = {**props(), "job": NAME, "verdict": "PASS"}
    provider = JobGateProvider()
    assert provider.diff(NAME, before, props()).changes is False
    changed = provider.diff(NAME, before, {**props(), name: "another"})
    assert (changed.changes, changed.replaces) == (True, [name])
    assert stem({**props(), name: "another"}) != stem(props())


def test_a_deletion_asks_no_service_which_may_be_gone() -> None:
    JobGateProvider().delete(NAME, props(service="deleted"))
