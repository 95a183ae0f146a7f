"""Environment variables of services and jobs of the clouds, by kind: name, plain value, place.

Sources: API references of ECS (ContainerDefinition), Lambda (Environment), SageMaker (ContainerDefinition,
CreateTrainingJob), App Runner (ImageConfiguration, CodeConfigurationValues), Batch (ContainerProperties),
CodeBuild (EnvironmentVariable); Cloud Run v1 and v2 (EnvVar), Cloud Functions v1 and v2, Vertex AI (EnvVar).
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from policies.resource import Resource
from policies.rules.properties import each


class Variable(NamedTuple):
    """A variable with a plain value; references to a store of secrets are none."""

    path: str
    name: str
    holder: dict[str, Any]
    """Reading `key` of it raises UndeterminedError for a value that is not known."""
    key: str


_Reader = Callable[[Resource], Iterator[Variable]]


def _listed(*keys: str) -> _Reader:
    """Variables as objects with `name` and `value`, below the keys."""

    def read(resource: Resource) -> Iterator[Variable]:
        for path, one in each(resource.props, *keys):
            yield from _row(path, one)

    return read


def _row(path: str, one: dict[str, Any]) -> Iterator[Variable]:
    if one.get("type") not in ("PARAMETER_STORE", "SECRETS_MANAGER") and not one.get("valueFrom"):
        yield Variable(path, str(one.get("name")), one, "value")


def _mapped(*keys: str) -> _Reader:
    """Variables as a mapping, below the keys."""

    def read(resource: Resource) -> Iterator[Variable]:
        for path, one in each(resource.props, *keys):
            for name in list(one):
                yield Variable(f"{path}.{name}", name, one, name)

    return read


def _document(key: str) -> _Reader:
    """Variables of the containers in a JSON text: a container, a list of them, or one of several nodes."""

    def read(resource: Resource) -> Iterator[Variable]:
        found = resource.props.get(key)
        try:
            content = json.loads(found) if isinstance(found, str) else found
        except ValueError:
            return  # the service refuses it
        rows = content if isinstance(content, list) else [content]
        for index, container in enumerate(rows):
            place = f"{key}[{index}]" if isinstance(content, list) else key
            for path, one in each(container, "environment", path=place):
                yield from _row(path, one)

    return read


READERS: dict[str, tuple[_Reader, ...]] = {
    "aws:ecs/taskDefinition:TaskDefinition": (_document("containerDefinitions"),),
    "aws:batch/jobDefinition:JobDefinition": (_document("containerProperties"),),
    "aws:lambda/function:Function": (_mapped("environment", "variables"),),
    "aws:sagemaker/model:Model": (
        _mapped("primaryContainer", "environment"), _mapped("containers", "environment"),
    ),
    "aws:codebuild/project:Project": (_listed("environment", "environmentVariables"),),
    "aws:apprunner/service:Service": (
        _mapped(
            "sourceConfiguration", "imageRepository", "imageConfiguration", "runtimeEnvironmentVariables"
        ),
        _mapped(
            "sourceConfiguration", "codeRepository", "codeConfiguration", "codeConfigurationValues",
            "runtimeEnvironmentVariables",
        ),
    ),
    "gcp:cloudrunv2/service:Service": (_listed("template", "containers", "envs"),),
    "gcp:cloudrunv2/workerPool:WorkerPool": (_listed("template", "containers", "envs"),),
    "gcp:cloudrunv2/job:Job": (_listed("template", "template", "containers", "envs"),),
    "gcp:cloudrun/service:Service": (_listed("template", "spec", "containers", "envs"),),
    "gcp:cloudfunctions/function:Function": (
        _mapped("environmentVariables"), _mapped("buildEnvironmentVariables"),
    ),
    "gcp:cloudfunctionsv2/function:Function": (
        _mapped("serviceConfig", "environmentVariables"), _mapped("buildConfig", "environmentVariables"),
    ),
}  # fmt: skip


def variables(resource: Resource) -> Iterator[Variable]:
    """The plain variables of a service or job. Raises UndeterminedError where they are not known."""
    for read in READERS[resource.kind]:
        yield from read(resource)
