"""The request of a run against the service's own model, and what people rely on in it."""

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.jobs.aws.plan import part
from infra.jobs.packing.pack import CodePack
from infra.jobs.plan import run_name, run_plan
from infra.launchers import runplan
from infra.launchers.aws import sagemaker
from tests.infra.jobs.samples import NOW, OUTPUTS, order
from tests.infra.launchers.test_managed import faults

_session: Any = importlib.import_module("botocore.session")  # without type hints
_validate: Any = importlib.import_module("botocore.validate")
MODEL = _session.get_session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape
PACK = CodePack(b"packed", ("train.py",), 6, "train.py", None, "ab" * 32)
CODE = "s3://small-aws-artifacts/code/abc/"


def request(**changes: Any) -> dict[str, Any]:
    made = sagemaker.training_job(run_plan(order(**changes), PACK, CODE, NOW, part_of=part))
    report = _validate.ParamValidator().validate(made, MODEL)
    assert not report.has_errors(), report.generate_report()
    assert faults(MODEL, made) == []
    return made


def test_a_spot_run_is_what_the_service_takes() -> None:
    made = request()
    assert made["TrainingJobName"] == "small-aws-ada-finetune-261126-153012"
    assert made["EnableManagedSpotTraining"] is True
    assert made["StoppingCondition"] == {"MaxRuntimeInSeconds": 7200, "MaxWaitTimeInSeconds": 14 * 3600}
    folder = "teams/vision-lab/small-aws-ada-finetune-261126-153012"
    assert made["CheckpointConfig"] == {"S3Uri": f"s3://small-aws-checkpoints/{folder}"}
    assert made["OutputDataConfig"] == {
        "S3OutputPath": "s3://small-aws-artifacts/runs",
        "KmsKeyId": OUTPUTS.kms_key,
    }
    assert made["RoleArn"].endswith("role/small-aws-training-ada")
    assert made["VpcConfig"]["Subnets"] == list(OUTPUTS.subnets)
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    assert tags["trainstack:stack"] == "small-aws" and tags["trainstack:person"] == "ada"
    assert tags["trainstack:team"] == "Vision Lab" and tags["trainstack:run"] == made["TrainingJobName"]


@pytest.mark.parametrize("task", ["evaluation", "Evaluation of adapters", "evaluate", "processing-2"])
def test_an_evaluation_runs_with_rights_to_read_and_keeps_no_checkpoint(task: str) -> None:
    made = request(task=task)
    assert made["RoleArn"].endswith("role/small-aws-evaluation-ada")
    assert "CheckpointConfig" not in made


@pytest.mark.parametrize("task", ["training", "fine-tune", "no evaluation", "evaluations"])
def test_any_other_task_trains(task: str) -> None:
    assert request(task=task)["RoleArn"].endswith("role/small-aws-training-ada")


def test_a_person_without_roles_of_jobs_has_one_role_for_all() -> None:
    asked = order(task="evaluation", person="bob")
    made = sagemaker.training_job(run_plan(asked, PACK, CODE, NOW, part_of=part))
    assert made["RoleArn"].endswith("role/small-aws-bob") and "CheckpointConfig" in made


def test_a_run_on_demand_says_nothing_of_waiting() -> None:
    made = request(spot=False)
    assert made["EnableManagedSpotTraining"] is False
    assert made["StoppingCondition"] == {"MaxRuntimeInSeconds": 7200}


def test_machines_stay_warm_only_on_request() -> None:
    assert "KeepAlivePeriodInSeconds" not in request()["ResourceConfig"]
    assert request(spot=False, keep_warm_minutes=30)["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 1800


def test_code_and_data_are_channels() -> None:
    made = request(data="s3://lab/cats/")
    found = {
        one["ChannelName"]: one["DataSource"]["S3DataSource"]["S3Uri"] for one in made["InputDataConfig"]
    }
    assert found == {"code": CODE, "data": "s3://lab/cats/"}
    start = made["Environment"]["TRAINSTACK_START"]
    assert "tar -xzf /opt/ml/input/data/code/code.tar.gz" in start
    assert made["AlgorithmSpecification"]["ContainerArguments"] == [
        "python3",
        "/opt/ml/input/data/code/smoke_training.zip",
        "job",
    ]


def test_the_run_says_of_itself_what_its_record_needs() -> None:
    reported = request(nodes=2, task="fine-tune", arguments=("--lr", "3e-4", "--note", "ü 'x'"))[
        "Environment"
    ]
    assert json.loads(reported["TRAINSTACK_ARGUMENTS"]) == ["--lr", "3e-4", "--note", "ü 'x'"]
    assert reported["TRAINSTACK_CODE_VERSION"] == f"pack:{PACK.sha256}"
    assert (reported["TRAINSTACK_OWNER"], reported["TRAINSTACK_TEAM"]) == ("ada", "Vision Lab")
    assert (reported["TRAINSTACK_DATASET"], reported["TRAINSTACK_TASK"]) == ("synthetic", "fine-tune")
    assert (reported["TRAINSTACK_GPUS"], reported["TRAINSTACK_COST_PER_HOUR"]) == ("1", "2.254")
    assert reported["MLFLOW_TRACKING_URI"] == OUTPUTS.tracking_uri
    assert reported["MLFLOW_EXPERIMENT_NAME"] == "Vision Lab"
    assert "TRAINSTACK_COST_PER_HOUR" not in request(machine="b200")["Environment"]
    assert request(machine="cpu")["Environment"]["TRAINSTACK_GPUS"] == "0"


def test_the_plan_is_one_that_other_launchers_take() -> None:
    plan = run_plan(order(folder=Path("/") / ("long-" * 20)), PACK, CODE, NOW, part_of=part)
    runplan.check(plan)
    assert runplan.parse(runplan.render(plan)) == plan


@pytest.mark.parametrize("name", ["finetune", "Mein Projekt!", "x" * 200, "日本", "-"])
def test_a_name_is_one_that_the_service_takes(name: str) -> None:
    asked = order(folder=Path("/somewhere") / name)
    for stack in ("small-aws", "a-stack-with-a-very-long-name-indeed-yes"):
        long = replace(asked, outputs=OUTPUTS.model_copy(update={"stack": stack}))
        made = run_name(long, NOW)
        assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", made) and len(made) <= 63
        assert made.endswith("-261126-153012")


def test_no_machine_is_asked_for_a_larger_disk_than_it_has() -> None:
    outputs = OUTPUTS.model_copy(
        update={"machines": (OUTPUTS.machines[0].model_copy(update={"machine": "ml.g4dn.xlarge"}),)}
    )
    asked = replace(order(), outputs=outputs, machine=outputs.machines[0])
    made = sagemaker.training_job(run_plan(asked, PACK, CODE, NOW, part_of=part))
    assert made["ResourceConfig"]["VolumeSizeInGB"] == 125


def test_disks_are_encrypted_where_the_service_attaches_them() -> None:
    assert request(machine="cpu")["ResourceConfig"]["VolumeKmsKeyId"] == OUTPUTS.kms_key
    assert "VolumeKmsKeyId" not in request()["ResourceConfig"]


def test_what_does_not_fit_a_variable_is_refused_with_another_way() -> None:
    with pytest.raises(UserError, match=r"arguments: .* 512.*\[variable-too-long\]"):
        request(arguments=("x" * 600,))
