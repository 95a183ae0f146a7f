"""The protocol of the engine's analyzers: configuration, requests and responses."""

from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import analyzer_pb2

from policies.pack.server import Analyzer

KEY = "aws:kms/key:Key"
URN = f"urn:pulumi:dev::app::{KEY}::it"
LEVEL = analyzer_pb2.EnforcementLevel
PROVIDER = analyzer_pb2.AnalyzerProviderResource(
    type="pulumi:providers:aws", urn="urn:pulumi:dev::app::pulumi:providers:aws::default", name="default"
)


class RefusedError(Exception):
    pass


class Context:
    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        raise RefusedError(details)


CONTEXT: Any = Context()


def struct(properties: dict[str, Any]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(properties)
    return made


def configured(reported: dict[str, tuple[int, dict[str, Any]]]) -> Analyzer:
    analyzer = Analyzer()
    policies = {
        name: analyzer_pb2.PolicyConfig(enforcementLevel=level, properties=struct(given))  # type: ignore[arg-type]
        for name, (level, given) in reported.items()
    }
    analyzer.Configure(analyzer_pb2.ConfigureAnalyzerRequest(policyConfig=policies), CONTEXT)
    return analyzer


def reported(analyzer: Analyzer, **properties: Any) -> list[tuple[str, int]]:
    """(policy, level) of the findings for a key, before its step and at the end."""
    given = struct(properties)
    one = analyzer_pb2.AnalyzeRequest(type=KEY, urn=URN, name="it", properties=given, provider=PROVIDER)
    whole = analyzer_pb2.AnalyzerResource(type=KEY, urn=URN, name="it", properties=given, provider=PROVIDER)
    before = analyzer.Analyze(one, CONTEXT)
    after = analyzer.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=[whole]), CONTEXT)
    found = [*before.diagnostics, *after.diagnostics]
    return [(each.policyName, each.enforcementLevel) for each in found if "MLS-IAM-07" in each.message]


def test_the_engine_learns_of_one_policy_for_each_severity_and_scope() -> None:
    info = Analyzer().GetAnalyzerInfo(empty_pb2.Empty(), CONTEXT)
    assert {policy.name for policy in info.policies} == {
        *(f"{severity}-resource" for severity in ("critical", "high", "medium", "low")),
        *(f"{severity}-stack" for severity in ("critical", "high", "medium", "low")),
        "audit",
    }
    advisory = [policy.name for policy in info.policies if policy.enforcementLevel == LEVEL.ADVISORY]
    assert advisory == ["audit"]
    (audit,) = [policy for policy in info.policies if policy.name == "audit"]
    assert set(audit.configSchema.properties.fields) == {"config", "environment", "waivers"}


def test_what_was_said_before_a_step_is_not_said_again() -> None:
    assert reported(Analyzer(), enableKeyRotation=False) == [("medium-resource", LEVEL.MANDATORY)]


@pytest.mark.parametrize(
    ("before", "at_the_end", "said"),
    [
        (LEVEL.DISABLED, LEVEL.MANDATORY, [("medium-stack", LEVEL.MANDATORY)]),
        (LEVEL.MANDATORY, LEVEL.DISABLED, [("medium-resource", LEVEL.MANDATORY)]),
        (
            LEVEL.ADVISORY,
            LEVEL.MANDATORY,
            [("medium-resource", LEVEL.ADVISORY), ("medium-stack", LEVEL.MANDATORY)],
        ),
    ],
)
def test_a_milder_policy_before_hides_nothing(before: int, at_the_end: int, said: Any) -> None:
    analyzer = configured({"medium-resource": (before, {}), "medium-stack": (at_the_end, {})})
    assert reported(analyzer, enableKeyRotation=False) == said


def test_every_fault_of_a_configuration_is_reported() -> None:
    with pytest.raises(RefusedError) as refused:
        configured({"hgih-stack": (LEVEL.ADVISORY, {}), "audit": (LEVEL.ADVISORY, {"waiver": "w.yaml"})})
    first, second = str(refused.value).splitlines()
    assert first.startswith("policy hgih-stack: ") and first.endswith(" [pack-unknown-policy]")
    assert second.startswith("policy audit: waiver: ") and second.endswith(" [pack-unknown-setting]")


def test_files_lie_beside_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "audit.yaml").write_text("enforcement: {MLS-IAM-07: disabled}\n")
    monkeypatch.chdir(tmp_path / "program")
    analyzer = configured({"audit": (LEVEL.ADVISORY, {"config": "audit.yaml"})})
    assert reported(analyzer, enableKeyRotation=False) == []


def test_whole_numbers_are_whole() -> None:
    analyzer = Analyzer()
    reported(analyzer, deletionWindowInDays=7, rate=0.5, tags={"a": "b"}, parts=[1, None, True])
    (props,) = analyzer._pack.resources._inputs.values()
    assert props == {"deletionWindowInDays": 7, "rate": 0.5, "tags": {"a": "b"}, "parts": [1, None, True]}
    assert type(props["deletionWindowInDays"]) is int
