"""The requests of managed services against the services' own models."""

import importlib
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from infra.launchers import managed
from infra.launchers.aws import sagemaker
from infra.launchers.gcp import vertex
from infra.launchers.runplan import VertexOptions
from infra.naming import gcp_labels
from tests.infra.launchers import plans

_session: Any = importlib.import_module("botocore.session")  # without type hints
_validate: Any = importlib.import_module("botocore.validate")
VERTEX = json.loads(Path(__file__).with_name("vertex.json").read_text())


@pytest.fixture(scope="module")
def model() -> Any:
    return (
        _session.get_session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape
    )


def faults(shape: Any, value: Any, path: str = "") -> list[str]:
    """What botocore itself leaves to the service: enumerations, patterns, lengths."""
    if shape.type_name == "structure":
        return [
            fault
            for key, item in value.items()
            for fault in faults(shape.members[key], item, f"{path}.{key}")
        ]
    if shape.type_name == "list":
        found = [
            fault
            for index, item in enumerate(value)
            for fault in faults(shape.member, item, f"{path}[{index}]")
        ]
        return found + _size(shape, len(value), path)
    if shape.type_name == "map":
        found = [fault for key, item in value.items() for fault in faults(shape.value, item, f"{path}.{key}")]
        found += [fault for key in value for fault in faults(shape.key, key, f"{path} key {key}")]
        return found + _size(shape, len(value), path)
    if shape.type_name != "string":
        return []
    found = _size(shape, len(value), path)
    if shape.enum and value not in shape.enum:
        found.append(f"{path}: {value} is none of the service's values")
    pattern = str(shape.metadata.get("pattern") or "").replace(r"\p{L}\p{Z}\p{N}", r"\w\s")
    if pattern and "\\p" not in pattern and not re.fullmatch(pattern, value):
        found.append(f"{path}: {value} does not match {pattern}")
    return found


def _size(shape: Any, size: int, path: str) -> list[str]:
    low, high = shape.metadata.get("min", 0), shape.metadata.get("max", size)
    return [] if low <= size <= high else [f"{path}: size {size} is not in {low} .. {high}"]


@pytest.mark.parametrize("nodes", [1, 2, 16])
def test_sagemaker_takes_the_request(model: Any, nodes: int) -> None:
    request = sagemaker.training_job(replace(plans.managed(), nodes=nodes))
    report = _validate.ParamValidator().validate(request, model)
    assert not report.has_errors(), report.generate_report()
    assert faults(model, request) == []
    assert request["ResourceConfig"]["InstanceCount"] == nodes
    assert request["StoppingCondition"]["MaxRuntimeInSeconds"] == 86400 + 1200


def test_sagemaker_takes_a_spot_run_with_its_code_and_waits_no_shorter_than_it_runs(model: Any) -> None:
    request = sagemaker.training_job(plans.spot())
    assert faults(model, request) == []
    assert not _validate.ParamValidator().validate(request, model).has_errors()
    place = plans.spot().sagemaker
    assert place is not None
    short = replace(plans.spot(), sagemaker=replace(place, max_wait_s=60))
    stopping = sagemaker.training_job(short)["StoppingCondition"]
    assert stopping["MaxWaitTimeInSeconds"] == stopping["MaxRuntimeInSeconds"] == short.deadline_s
    on_demand = sagemaker.training_job(replace(short, sagemaker=replace(place, spot=False, keep_alive_s=600)))
    assert "MaxWaitTimeInSeconds" not in on_demand["StoppingCondition"]
    assert on_demand["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 600


def test_the_model_does_refuse_what_is_wrong(model: Any) -> None:
    request = sagemaker.training_job(replace(plans.managed(), name="x" * 64, instance_type="p4d.huge"))
    found = "\n".join(faults(model, request))
    assert "TrainingJobName: size 64" in found and "ml.p4d.huge" in found


@pytest.mark.parametrize("nodes", [1, 2, 16])
def test_vertex_takes_the_job(nodes: int) -> None:
    job = vertex.custom_job(replace(plans.vertex(), nodes=nodes))
    jsonschema.validate(job, VERTEX)
    assert sum(pool["replicaCount"] for pool in job["jobSpec"]["workerPoolSpecs"]) == nodes


def test_a_machine_without_accelerators_names_none() -> None:
    plan = replace(plans.vertex(), gpus_per_node=0, vertex=managed_vertex_without_gpu())
    job = vertex.custom_job(plan)
    jsonschema.validate(job, VERTEX)
    assert job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] == {"machineType": "a3-highgpu-8g"}


def managed_vertex_without_gpu() -> Any:
    from infra.launchers.runplan import VertexOptions

    return VertexOptions()


def bringing(**changes: Any) -> dict[str, Any]:
    plan = plans.vertex()
    assert plan.vertex is not None
    plan = replace(plan, max_restarts=0, vertex=replace(plan.vertex, **changes))
    found: dict[str, Any] = vertex.custom_job(plan)
    jsonschema.validate(found, VERTEX)
    return found


@pytest.mark.parametrize(
    ("spot", "scheduling"),
    [
        (False, {"restartJobOnWorkerRestart": False, "disableRetries": True}),
        (True, {"restartJobOnWorkerRestart": True, "strategy": "SPOT"}),
    ],
)
def test_vertex_tries_again_what_the_cloud_took_and_nothing_else(
    spot: bool, scheduling: dict[str, Any]
) -> None:
    assert bringing(spot=spot)["jobSpec"]["scheduling"] == {"timeout": "87600s", **scheduling}


def test_flex_start_waits_for_its_machines() -> None:
    scheduling = bringing(flex_wait_s=7200)["jobSpec"]["scheduling"]
    assert (scheduling["strategy"], scheduling["maxWaitDuration"]) == ("FLEX_START", "7200s")


def test_a_vertex_request_names_reservation_and_keys() -> None:
    place = "projects/acme/zones/us-central1-a/reservations/h100"
    found = bringing(reservation=place, kms_key="projects/acme/k", job_name="mine")
    machine = found["jobSpec"]["workerPoolSpecs"][1]["machineSpec"]
    assert machine["reservationAffinity"]["values"] == [place]
    assert found["displayName"] == "mine" and found["encryptionSpec"] == {"kmsKeyName": "projects/acme/k"}


def test_labels_of_vertex_are_those_of_every_resource() -> None:
    labels = {"trainstack:person": "Ada.L", "owner": "ml@example.com", "a/b.c": "x" * 70}
    found = vertex.custom_job(replace(plans.vertex(), labels=labels))
    jsonschema.validate(found, VERTEX)
    assert found["labels"] == gcp_labels(labels)


def test_code_in_a_bucket_is_there_before_the_command() -> None:
    start = {one["name"]: one["value"] for one in _container(bringing(code_uri="gs://b/code/1/"))["env"]}
    assert "gs://b/code/1/ /tmp/trainstack/code; " in start[managed.START] and "tar " not in str(start)
    packed = _container(bringing(code_uri="gs://b/code/1/", packed=True))["env"]
    assert "tar -xzf /tmp/trainstack/code/code.tar.gz; " in str(packed)


@pytest.mark.parametrize(
    ("known", "ending"),
    [({"CLOUD_ML_JOB_ID": "417"}, "417"), ({}, r"\d{12}")],
    ids=["by its id", "by the time"],
)
def test_jobs_of_one_request_have_a_folder_each_before_the_command(
    known: dict[str, str], ending: str
) -> None:
    plan = plans.vertex()
    each = replace(plan, work_root="/tmp/runs", vertex=VertexOptions(code_uri="gs://b/c/", folder_each=True))
    found = vertex.custom_job(each)
    jsonschema.validate(found, VERTEX)
    result = {one["name"]: one["value"] for one in _container(found)["env"]}
    brought, _, _ = result[managed.START].partition("P=$(")
    first = brought[brought.index("export WORK_DIR") :]
    ran = subprocess.run(
        ["bash", "-c", f"{first} echo $WORK_DIR"],
        env={"WORK_DIR": result["WORK_DIR"], "PATH": os.environ["PATH"], **known},
        capture_output=True, text=True, check=True, timeout=10,
    )  # fmt: skip
    assert re.fullmatch(f"/tmp/runs/{plan.name}-{ending}", ran.stdout.strip())
    assert "CLOUD_ML_JOB_ID" not in json.dumps(vertex.custom_job(plan))


def _container(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    return found
