"""GPUs of notebooks and endpoints of SageMaker that nothing stops, and what is right in another way."""

import base64
from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.judging import made, results

RULE = "MLS-COST-03"
LIFECYCLE = "aws:sagemaker/notebookInstanceLifecycleConfiguration:NotebookInstanceLifecycleConfiguration"
NIGHT = made("aws:scheduler/schedule:Schedule", "night")


def notebook(machine: str = "ml.p4d.24xlarge", **more: Any) -> Resource:
    return made("aws:sagemaker/notebookInstance:NotebookInstance", "book", instanceType=machine, **more)


def script(text: str) -> Resource:
    return made(LIFECYCLE, "stop", name="stop", onStart=base64.b64encode(text.encode()).decode())


def endpoint(machine: str = "ml.p4d.24xlarge", **more: Any) -> Resource:
    variant = {"instanceType": machine, "initialInstanceCount": 1, **more}
    return made(
        "aws:sagemaker/endpointConfiguration:EndpointConfiguration", "e", productionVariants=[variant]
    )


def scaling(least: int) -> Resource:
    return made("aws:appautoscaling/target:Target", "t", serviceNamespace="sagemaker", minCapacity=least)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([notebook()], "fail"),
        ([notebook(), NIGHT], "pass"),
        ([notebook("ml.t3.medium")], "not-applicable"),
        ([notebook(tags={"environment": "production"})], "not-applicable"),
        ([notebook(lifecycleConfigName="stop"), script("python autostop.py --idle-time 3600")], "pass"),
        ([notebook(lifecycleConfigName="stop"), script("pip install torch")], "fail"),
        ([notebook(lifecycleConfigName="elsewhere")], "undetermined"),
        ([endpoint()], "fail"),
        ([endpoint(), scaling(1)], "fail"),
        ([endpoint(), scaling(0)], "pass"),
        ([endpoint(managedInstanceScaling={"minInstanceCount": 0, "maxInstanceCount": 2})], "pass"),
        ([endpoint("ml.m5.large")], "not-applicable"),
        ([endpoint(), NIGHT], "pass"),
    ],
)
def test_gpus_of_services(resources: list[Resource], expected: str) -> None:
    assert results(RULE, *resources) == [expected]
