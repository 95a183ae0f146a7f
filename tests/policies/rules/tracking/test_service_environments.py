"""Credentials in the environment of services and jobs of the clouds; beside each refusal an accepted one."""

import json
from typing import Any

import pytest

from policies.resource import Resource, UnknownValue, partly
from tests.policies.rules.judging import made, results

RULE = "MLS-TRK-04"


def ecs(**container: Any) -> dict[str, Any]:
    return {"containerDefinitions": json.dumps([{"name": "a", "image": "b", **container}])}


def rows(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in pairs]


def cloud_run(kind: str, *variables: dict[str, Any]) -> Resource:
    containers = {"containers": [{"image": "a", "envs": [*variables]}]}
    nested = {
        "gcp:cloudrunv2/job:Job": {"template": containers},
        "gcp:cloudrun/service:Service": {"spec": containers},
    }
    return made(kind, template=nested.get(kind, containers))


PLAIN, STORED = {"DB_PASSWORD": "hunter2"}, {"DB_PASSWORD_ARN": "arn:aws:secretsmanager:us-east-1:1:secret:a"}
STORE = {"name": "NPM_TOKEN", "value": "a", "type": "SECRETS_MANAGER"}
REFERENCE = {"name": "DB_PASSWORD", "valueSource": {"secretKeyRef": {"secret": "a", "version": "latest"}}}
RUN = (
    "gcp:cloudrunv2/service:Service",
    "gcp:cloudrunv2/job:Job",
    "gcp:cloudrunv2/workerPool:WorkerPool",
    "gcp:cloudrun/service:Service",
)
TASK, LAMBDA = "aws:ecs/taskDefinition:TaskDefinition", "aws:lambda/function:Function"
MODEL, BUILD = "aws:sagemaker/model:Model", "aws:codebuild/project:Project"
BATCH, APP = "aws:batch/jobDefinition:JobDefinition", "aws:apprunner/service:Service"
OLD, NEW = "gcp:cloudfunctions/function:Function", "gcp:cloudfunctionsv2/function:Function"


def app(**variables: str) -> dict[str, Any]:
    image = {"runtimeEnvironmentVariables": variables}
    return {"sourceConfiguration": {"imageRepository": {"imageConfiguration": image}}}


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (made(TASK, **ecs(environment=rows(("DB_PASSWORD", "hunter2")))), "fail"),
        (made(TASK, **ecs(environment=rows(("URL", "postgres://a:hunter2@db/x")))), "fail"),
        (made(TASK, **ecs(secrets=[{"name": "DB_PASSWORD", "valueFrom": "arn:a"}])), "pass"),
        (made(TASK, **ecs(environment=rows(("DB_PASSWORD_FILE", "/run/a"), ("DB_HOST", "db")))), "pass"),
        (made(TASK, containerDefinitions="{"), "pass"),
        (made(BATCH, containerProperties=json.dumps({"environment": rows(("API_TOKEN", "x1"))})), "fail"),
        (made(BATCH, containerProperties=json.dumps({"environment": rows(("TOKENIZERS", "x"))})), "pass"),
        (made(LAMBDA, environment={"variables": PLAIN}), "fail"),
        (made(LAMBDA, environment={"variables": STORED}), "pass"),
        (made(LAMBDA), "pass"),
        (made(MODEL, primaryContainer={"environment": {"HF_TOKEN": "hf_1"}}), "fail"),
        (made(MODEL, containers=[{"environment": {"HF_MODEL_ID": "a/b"}}]), "pass"),
        (made(MODEL, containers=[{"environment": {"HF_TOKEN": "hf_1"}}]), "fail"),
        (made(BUILD, environment={"environmentVariables": rows(("NPM_TOKEN", "x1"))}), "fail"),
        (made(BUILD, environment={"environmentVariables": [STORE]}), "pass"),
        (made(APP, **app(API_KEY="x1")), "fail"),
        (made(APP, **app(API_URL="https://example.com")), "pass"),
        *((cloud_run(kind, *rows(("DB_PASSWORD", "hunter2"))), "fail") for kind in RUN),
        *((cloud_run(kind, REFERENCE), "pass") for kind in RUN),
        (made(OLD, environmentVariables=PLAIN), "fail"),
        (made(OLD, environmentVariables={"DB_PASSWORD": "projects/a/secrets/b"}), "pass"),
        (made(NEW, serviceConfig={"environmentVariables": PLAIN}), "fail"),
        (made(NEW, serviceConfig={"environmentVariables": {"DB_SECRET_NAME": "b"}}), "pass"),
    ],
)  # fmt: skip
def test_credentials_of_services(thing: Resource, expected: str) -> None:
    assert results(RULE, thing) == [expected]


@pytest.mark.parametrize(("name", "expected"), [("DB_PASSWORD", "undetermined"), ("DB_HOST", "pass")])
def test_a_value_that_is_not_known_is_undetermined_where_it_could_be_a_credential(
    name: str, expected: str
) -> None:
    variables = partly({name: UnknownValue("environment", "known after the deployment")})
    assert results(RULE, made(LAMBDA, environment={"variables": variables})) == [expected]
