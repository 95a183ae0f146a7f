"""The spec decides the action on a violated admission policy."""

from typing import Any

import pytest

from infra.stackspec.layouts import ClusterLayout
from policies.admission.manifests import manifests
from stacks.admission import actions
from tests.stacks.composition.composed import composed, stack_spec

PAIR = ("medium", "aws")


@pytest.mark.parametrize(
    ("environment", "admission", "expected"),
    [
        ("dev", None, ("Warn", "Audit")),
        ("test", None, ("Warn", "Audit")),
        ("staging", None, ("Deny",)),
        ("prod", None, ("Deny",)),
        ("dev", "deny", ("Deny",)),
        ("prod", "warn", ("Warn", "Audit")),
    ],
)
def test_the_environment_decides_unless_the_spec_does(
    environment: str, admission: str | None, expected: tuple[str, ...]
) -> None:
    def change(spec: Any) -> None:
        spec["environment"] = environment
        spec["layout"]["admission"] = admission

    spec = stack_spec(PAIR, change)
    assert isinstance(spec.layout, ClusterLayout)
    assert actions(spec, spec.layout) == expected


def test_every_rule_is_deployed_under_its_id_before_there_are_namespaces_for_jobs() -> None:
    graph = composed(PAIR)
    expected = manifests(actions=("Warn", "Audit"))
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        found = [body for name, body in graph.all(kind).items() if "-admission-" in name]
        assert {body["metadata"]["name"]: body["spec"] for body in found} == {
            body["metadata"]["name"]: body["spec"] for body in expected if body["kind"] == kind
        }
    bindings = {name for name in graph.edges if "Binding:dev-admission-" in name and "Admission" in name}
    assert len(bindings) == len(expected) // 2
    # What jobs run by comes after these, and what queues jobs after that.
    assert bindings <= graph.waits_for("Trainer:dev-trainer")
    assert "ClusterTrainingRuntime:dev-trainer-torch-a100" in graph.waits_for("Queueing:dev-queueing")
