"""Task definitions and services of ECS."""

import json
import re
from collections.abc import Iterator
from typing import Any

from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import text
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import known
from rehearsal.core.rules.model import Violation

_TASK, _SERVICE = "aws:ecs/taskDefinition:TaskDefinition", "aws:ecs/service:Service"
_PAIRS = "cfn-lint 1.58.0 aws_ecs_taskdefinition/fargate_cpu_memory (ECS Developer Guide, Fargate task sizes)"
_API = "botocore 1.44.5 ecs/2014-11-13 RegisterTaskDefinitionRequest"
# CPU units -> MiB of memory that Fargate offers with them.
_MEMORY: dict[int, tuple[int, ...]] = {
    256: (512, 1024, 2048),
    512: tuple(range(1024, 4097, 1024)),
    1024: tuple(range(2048, 8193, 1024)),
    2048: tuple(range(4096, 16385, 1024)),
    4096: tuple(range(8192, 30721, 1024)),
    8192: tuple(range(16384, 61441, 4096)),
    16384: tuple(range(32768, 122881, 8192)),
    32768: (61440, 122880, 249856),
}


def _size(value: Any, unit: str) -> int | None:
    """CPU units or MiB of a size: a number, or a text with the unit vCPU or GB; None for another text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    form = (
        re.fullmatch(rf"\s*(\d*\.?\d+)\s*({unit})?\s*", value, re.IGNORECASE)
        if isinstance(value, str)
        else None
    )
    if form is None:
        return None
    return round(float(form[1]) * 1024) if form[2] else int(float(form[1]))


def _on_fargate(inputs: Properties) -> bool:
    kinds = inputs.get("requiresCompatibilities")
    return isinstance(kinds, list) and "FARGATE" in kinds


@BOOK.rule("AWS-ECS-001", _TASK, source=_PAIRS)
def fargate_size(inputs: Properties) -> Iterator[Violation]:
    """A task for Fargate has CPU and memory that Fargate offers together."""
    if not _on_fargate(inputs):
        return
    given = {name: inputs.get(name) for name in ("cpu", "memory")}
    for name, value in given.items():
        if value is None:
            yield Violation(
                name, f"Fargate requires task definition to have {name} set", "", "ClientException"
            )
    cpu, memory = _size(given["cpu"], "vcpu"), _size(given["memory"], "gb")
    for name, value, size in (("cpu", given["cpu"], cpu), ("memory", given["memory"], memory)):
        if known(value) and size is None:
            yield Violation(name, f"{value} is not a number of units", "", "ClientException")
    if cpu is not None and cpu not in _MEMORY:
        near = min(_MEMORY, key=lambda one: abs(one - cpu))
        yield Violation(
            "cpu",
            f"No Fargate configuration exists for {cpu} CPU",
            f"The nearest is {near}.",
            "ClientException",
        )
    elif cpu is not None and memory is not None and memory not in _MEMORY[cpu]:
        near = min(_MEMORY[cpu], key=lambda one: abs(one - memory))
        message = f"No Fargate configuration exists for given values: {cpu} CPU, {memory} memory"
        yield Violation("memory", message, f"The nearest is {near}.", "ClientException")


@BOOK.rule("AWS-ECS-002", _TASK, source="cfn-lint 1.58.0 aws_ecs_taskdefinition/fargate_properties")
def fargate_network(inputs: Properties) -> Iterator[Violation]:
    """A task for Fargate has the network mode awsvpc, and no placement constraints."""
    if not _on_fargate(inputs):
        return
    mode = inputs.get("networkMode")
    if mode is not UNKNOWN and mode != "awsvpc":
        message = "Fargate only supports network mode 'awsvpc'"
        yield Violation("networkMode", message, "Set awsvpc.", "ClientException")
    if inputs.get("placementConstraints"):
        yield Violation("placementConstraints", "Fargate supports none", "Leave it out.", "ClientException")


@BOOK.rule("AWS-ECS-003", _TASK, source=f"{_API} (ContainerDefinition: name, image, essential, memory)")
def containers(inputs: Properties) -> Iterator[Violation]:
    """The containers of a task are a JSON list of objects with names and images; one is essential."""
    path, given = "containerDefinitions", text(inputs.get("containerDefinitions"))
    if given is None:
        return
    try:
        found = json.loads(given)
    except ValueError:
        yield Violation(path, "ECS Task Definition container_definitions is invalid: it is not valid JSON")
        return
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found) or not found:
        yield Violation(
            path, "Container list cannot be empty: it is a JSON list of objects", "", "ClientException"
        )
        return
    names = [one.get("name") for one in found]
    for name in ("name", "image"):
        if not all(one.get(name) for one in found):
            yield Violation(path, f"Container.{name} should not be null or empty", "", "ClientException")
    if len(set(map(str, names))) != len(names):
        yield Violation(path, f"names of containers must be unique: {', '.join(map(str, names))}")
    if not any(one.get("essential", True) for one in found):
        yield Violation(
            path, "A task definition must have at least one essential container", "", "ClientException"
        )
    whole = inputs.get("memory") is not None
    if not whole and not all(one.get("memory") or one.get("memoryReservation") for one in found):
        message = (
            "Invalid setting for container: at least one of 'memory' or 'memoryReservation' must be specified"
        )
        yield Violation(path, message, "Or give the task's memory.", "ClientException")


@BOOK.rule(
    "AWS-ECS-004", _SERVICE, source="cfn-lint 1.58.0 aws_ecs_service/fargate, service_network_configuration"
)
def fargate_service(inputs: Properties) -> Iterator[Violation]:
    """A service on Fargate has a network configuration and replicas."""
    if inputs.get("launchType") != "FARGATE":
        return
    if inputs.get("networkConfiguration") is None:
        message = "Network Configuration must be provided when networkMode 'awsvpc' is specified"
        yield Violation("networkConfiguration", message, "", "InvalidParameterException")
    if inputs.get("schedulingStrategy") == "DAEMON":
        message = "The daemon scheduling strategy does not support the Fargate launch type"
        yield Violation("schedulingStrategy", message, "Use REPLICA.", "InvalidParameterException")


@BOOK.rule(
    "AWS-ECS-005",
    _SERVICE,
    source="botocore 1.44.5 ecs/2014-11-13 CreateServiceRequest (deploymentConfiguration)",
)
def deployment(inputs: Properties) -> Iterator[Violation]:
    """A deployment may stop a task or start one more."""
    least, most = inputs.get("deploymentMinimumHealthyPercent"), inputs.get("deploymentMaximumPercent")
    if least == 100 and most == 100:
        message = "Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments"
        yield Violation("deploymentMaximumPercent", message, "Raise it.", "InvalidParameterException")
