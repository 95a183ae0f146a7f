"""The schemas that ship with the rehearsal, and validation with them."""

import json
from pathlib import Path

import pytest

from rehearsal.kubernetes.rules import admission
from rehearsal.kubernetes.rules.objects import schema
from tests.rehearsal.kubernetes.rules.examples.custom import queue
from tools import crd_schemas as schemas


def test_the_schemas_are_those_of_the_pinned_module() -> None:
    try:
        module = schemas.module()
    except RuntimeError as error:
        pytest.skip(str(error))
    assert json.loads(schemas.TARGET.read_text()) == schemas.derive(Path(module["Dir"]), module["Version"])


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"queueingStrategy": "LIFO"}, "spec.queueingStrategy", "Unsupported value"),
        ({"cohortName": 3}, "spec.cohortName", "must be of type string"),
        ({"cohortName": "No Capitals"}, "spec.cohortName", "should match"),
        ({"resourceGroups": [{"flavors": []}]}, "spec.resourceGroups[0].coveredResources", "Required value"),
        ({"preemptoin": {}}, "spec.preemptoin", "did you mean preemption"),
    ],
)
def test_a_custom_object_must_fit(change: dict[str, object], path: str, words: str) -> None:
    found = schema.known()["kueue.x-k8s.io/v1beta2"]["ClusterQueue"]
    body = queue()
    assert list(schema.misfits(found, body)) == []
    body["spec"].update(change)
    faults = {fault.path: f"{fault.message} {fault.fix}" for fault in schema.misfits(found, body)}
    assert words in faults[path]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"autoscalingPolicy": {"consolidationDelayMinutes": 1440}, "priorities": [{"spot": True}]}, None),
        (
            {"autoscalingPolicy": {"consolidationDelayMinutes": 1441}},
            "spec.autoscalingPolicy.consolidationDelayMinutes",
        ),
        ({"autoscalingPolicy": {"idleMinutes": 5}}, "spec.autoscalingPolicy.idleMinutes"),
        ({"whenUnsatisfiable": "Wait"}, "spec.whenUnsatisfiable"),
        ({"idleMinutes": 5}, "spec.idleMinutes"),
    ],
)
def test_a_class_of_gke_must_fit(change: dict[str, object], path: str | None) -> None:
    found = schema.known()["cloud.google.com/v1"]["ComputeClass"]
    faults = [fault.path for fault in schema.misfits(found, {"spec": change})]
    assert faults == ([path] if path else [])


@pytest.mark.parametrize(("kind", "fits"), [("ProvisioningRequestConfig", True), ("-config", False)])
def test_patterns_in_the_syntax_of_go(kind: str, fits: bool) -> None:
    found = schema.known()["kueue.x-k8s.io/v1beta2"]["AdmissionCheck"]
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": kind, "name": "flex"}
    spec = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
    assert [fault.path for fault in schema.misfits(found, {"spec": spec})] == (
        [] if fits else ["spec.parameters.kind"]
    )


def test_a_pattern_that_python_cannot_read_is_ignored() -> None:
    kept = {"type": "object", "properties": {"name": {"type": "string", "pattern": r"^\p{L}+$"}}}
    assert list(schema.misfits(kept, {"name": "1"})) == []


def test_what_has_a_default_may_be_left_out() -> None:
    kept = {"type": "object", "required": ["mode"], "properties": {"mode": {"default": "a"}}}
    assert list(schema.misfits(kept, {})) == []


def test_a_check_reports_all_errors_and_names_the_rules() -> None:
    inputs = {"metadata": {"name": "Web", "labels": {"a b": "c"}}, "spec": {"ports": [{"port": 0}]}}
    found = admission.check("kubernetes:core/v1:Service", inputs, custom=False, reported=[])
    assert {failure.property for failure in found} == {
        "metadata.name",
        "metadata.labels",
        "spec.ports[0].port",
    }
    assert all("(K8S-" in failure.reason for failure in found)
