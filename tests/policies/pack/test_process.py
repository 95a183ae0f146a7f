"""The pack as the process that the engine starts and waits for."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

PACK = Path(__file__).resolve().parents[3] / "policies"


@dataclass(frozen=True)
class Started:
    imports: Path
    """Every module that it imported before it was ready, a line each."""
    stub: analyzer_pb2_grpc.AnalyzerStub


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    imports = tmp_path_factory.mktemp("pack") / "imports"
    with (
        imports.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-X", "importtime", str(PACK)], stdout=subprocess.PIPE, stderr=file, text=True
        ) as process,
    ):
        assert process.stdout
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            yield Started(imports, analyzer_pb2_grpc.AnalyzerStub(channel))
        process.terminate()


def test_it_imports_no_more_than_it_needs_to_be_ready(started: Started) -> None:
    """The engine does nothing else meanwhile."""
    names = {line.rpartition("|")[2].strip() for line in started.imports.read_text().splitlines()}
    assert "policies.pack.dispatcher" in names
    unneeded = ("pulumi.automation", "policies.evidence", "policies.frameworks", "policies.sources.live")
    assert not names & {*unneeded, "jsonschema", "yaml", "http.server", "pulumi_aws"}


def test_it_reports_its_policies(started: Started) -> None:
    info = started.stub.GetAnalyzerInfo(empty_pb2.Empty())
    assert info.name == "trainstack"
    assert {"critical-resource", "critical-stack", "audit"} <= {one.name for one in info.policies}


def test_it_judges_a_resource(started: Started) -> None:
    kind = "aws:kms/key:Key"
    provider = analyzer_pb2.AnalyzerProviderResource(type="pulumi:providers:aws", urn="urn:pulumi:a::b::c::d")
    asked = analyzer_pb2.AnalyzeRequest(type=kind, urn=f"urn:pulumi:a::b::{kind}::it", provider=provider)
    asked.properties.update({"enableKeyRotation": False})
    assert "MLS-IAM-07" in started.stub.Analyze(asked).diagnostics[0].message


def test_it_says_at_once_that_it_changes_nothing(started: Started) -> None:
    """The engine asks for every resource, and goes on after this one answer."""
    with pytest.raises(grpc.RpcError) as refused:
        started.stub.Remediate(analyzer_pb2.AnalyzeRequest())
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
