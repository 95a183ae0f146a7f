"""Nodes of a validation, from a result in a store or in a rehearsal."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from infra.clouds.aws import login as aws_login
from infra.gate import Gate
from infra.outputs.cluster import ValidationRun
from rehearsal.client import Rehearsal
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli.operations.results import by_nodes, headline, read

URI = "s3://dev-aws-checkpoints/smoke/smoke-1/result.json"
RUN = ValidationRun(pool="a100", job="smoke-1", namespace="trainstack-smoke", result_uri=URI)
STACK = EXPORTED.model_copy(update={"smoke": (RUN,)})
RESULT = {
    "headline": "PASS 1.98x on 2 nodes",
    "duration_s": 141.2,
    "cluster": {
        "nodes": 2, "device": "cuda",
        "ranks": [{"rank": rank, "host": f"ip-10-0-1-{2 - rank // 2}"} for rank in range(4)],
    },
}  # fmt: skip
NODES = "ip-10-0-1-1, ip-10-0-1-2: PASS 1.98x on 2 nodes"


def gate(run: str, pool: str = "a100") -> Gate:
    return Gate(f"trainstack-smoke/{run}", "passed", None, 2, pool, "")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    client = boto3.client(
        "s3", region_name="us-east-1", aws_access_key_id="-", aws_secret_access_key="-"
    )  # fmt: skip
    monkeypatch.setattr(aws_login, "clients", lambda: lambda service, region: client)
    with Stubber(client) as stub:
        yield stub


def stored(s3: Stubber, result: Any, key: str = "smoke/smoke-1/result.json") -> None:
    content = json.dumps(result).encode()
    body = StreamingBody(io.BytesIO(content), len(content))
    s3.add_response("get_object", {"Body": body}, {"Bucket": "dev-aws-checkpoints", "Key": key})


def shown(run: str) -> list[str]:
    return [str(one) for one in by_nodes([gate(run)], STACK, None)]


def test_nodes_are_named_from_the_result_in_the_store(s3: Stubber) -> None:
    stored(s3, RESULT)
    assert shown("smoke-1") == [NODES]


def test_a_later_run_than_that_of_the_outputs_has_its_result_beside_it(s3: Stubber) -> None:
    stored(s3, {**RESULT, "headline": "FAIL straggler"}, "smoke/smoke-2/result.json")
    assert shown("smoke-2") == ["ip-10-0-1-1, ip-10-0-1-2: FAIL straggler"]


def test_a_pool_without_outputs_has_no_line(s3: Stubber) -> None:
    assert list(by_nodes([gate("smoke-9", "h100")], STACK, None)) == []


@pytest.mark.parametrize("result", [["no", "object"], {}])
def test_a_document_that_is_not_a_result_is_an_error(s3: Stubber, result: Any) -> None:
    stored(s3, result)
    (found,) = by_nodes([gate("smoke-1")], STACK, None)
    assert (found.uri, found.nodes, bool(found.error)) == (URI, (), True)


def test_a_caller_without_rights_gets_the_missing_one(s3: Stubber) -> None:
    s3.add_client_error("get_object", "AccessDenied", "not authorized to perform: s3:GetObject")
    (found,) = by_nodes([gate("smoke-1")], STACK, None)
    assert "s3:GetObject" in found.error


def test_a_result_in_a_volume_is_not_asked_for() -> None:
    run = RUN.model_copy(update={"result_uri": "/checkpoints/smoke/smoke-1/result.json"})
    (found,) = by_nodes([gate("smoke-1")], STACK.model_copy(update={"smoke": (run,)}), None)
    assert found.error and not found.nodes


def test_ranks_that_never_reported_have_no_nodes(s3: Stubber) -> None:
    stored(s3, {**RESULT, "cluster": {"nodes": 2, "ranks": []}, "headline": "FAIL rendezvous"})
    assert [line.rpartition(": ")[2] for line in shown("smoke-1")] == ["FAIL rendezvous"]


def test_a_rehearsal_has_its_results_on_the_disk(tmp_path: Path) -> None:
    rehearsal = Rehearsal(tmp_path)
    path = rehearsal.local_path(URI)
    assert "No such file" in next(by_nodes([gate("smoke-1")], STACK, rehearsal)).error
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(RESULT))
    assert str(next(by_nodes([gate("smoke-1")], STACK, rehearsal))) == NODES
    assert headline(read(URI, "", rehearsal)).startswith("PASS 1.98x on 2")
