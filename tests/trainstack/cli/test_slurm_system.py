"""`trainstack status` of a Slurm system, and commands that do not apply to one."""

import json
import shlex
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from infra.errors import UserError
from infra.outputs.jobs import ValidationJob
from infra.outputs.slurm import PartitionOutputs, SlurmOutputs
from tests.trainstack.cli.command import run, run_json
from trainstack.cli.jobs import opened
from trainstack.cli.operations import session

STACK = "large-slurm-aws"
SYSTEM = SlurmOutputs(
    stack=STACK, cloud="aws", region="us-east-1", profile="large-slurm", owner="a@example.com",
    cost_center="c", cluster_id="pcs_abc123", slurm_version="25.11", login_group_id="pcs_login1", checkpoint_uri="s3://c",
    dataset_uri="s3://d", artifact_uri="s3://a", accounts=("research", "vision"), budget="b",
    partitions=(
        PartitionOutputs(name="p4d", machine="p4d.24xlarge", purchase="on_demand", max_nodes=16,
                         group_id="pcs_1", usd_per_hour=21.9576),
        PartitionOutputs(name="cpu", machine="m6i.4xlarge", purchase="spot", max_nodes=4,
                         group_id="pcs_2", usd_per_hour=None),
    ),
    smoke=(ValidationJob(job="smoke-1", result_uri="s3://c/smoke/smoke-1/result.json"),),
)  # fmt: skip


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """A stack in its backend with these outputs."""

    def put(record: dict[str, Any]) -> None:
        engine = SimpleNamespace(
            outputs=lambda: {"trainstack": SimpleNamespace(value=record, secret=False)},
            resources=lambda: [{"custom": True, "type": "aws:s3/bucket:Bucket", "urn": "urn:b"}],
        )
        for module in (session, opened):
            monkeypatch.setattr(module, "open_engine", lambda *_, **__: (engine, None))

    put(SYSTEM.model_dump(mode="json"))
    return put


@pytest.mark.usefixtures("deployed")
def test_status_shows_partitions_version_and_the_way_to_the_login_node() -> None:
    code, text = run("status", "-s", STACK)
    assert code == 0
    for word in ("pcs_abc123", "25.11", "p4d.24xlarge", "21.96", "price unknown", "research, vision"):
        assert word in text
    (command,) = [line for line in text.splitlines() if "ssm start-session" in line]
    words = shlex.split(command)
    assert words[words.index("--region") + 1] == "us-east-1"
    assert "Name=tag:aws:pcs:compute-node-group-id,Values=pcs_login1" in command
    assert "closed" not in text, "the gate is passed, or `up` would not have ended"


@pytest.mark.usefixtures("deployed")
def test_status_as_a_document_has_the_outputs() -> None:
    code, found = run_json("status", "-s", STACK)
    assert (code, found["state"]) == (0, "deployed")
    assert found["outputs"] == json.loads(SYSTEM.model_dump_json())


def test_outputs_without_a_version_are_read(deployed: Callable[[dict[str, Any]], None]) -> None:
    record = SYSTEM.model_dump(mode="json")
    del record["slurm_version"]
    deployed(record)
    code, text = run("status", "-s", STACK)
    assert code == 0 and "25.11" not in text


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize(
    "words",
    [
        ("kubeconfig",),
        ("open", "mlflow"),
        ("open", "grafana"),
        ("queue",),
        ("validate",),
        ("runs",),
    ],
    ids=" ".join,
)
def test_commands_for_a_cluster_or_jobs_name_the_login_node_instead(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        run(*words, "-s", STACK)
    assert caught.value.codes == (("stack-is-slurm", "stack"),)
    assert f"trainstack status -s {STACK}" in caught.value.problems[0].fix


@pytest.mark.parametrize("stack", [STACK, "small-aws"])
def test_a_fault_of_ranks_in_pods_is_refused_where_a_job_validates(stack: str) -> None:
    with pytest.raises(UserError) as refused:
        run("up", "-s", stack, "--rehearse", "--yes", "--fault", "smoke:slow-rank=1")
    (problem,) = refused.value.problems
    assert (problem.path, problem.code) == ("--fault", "fault-needs-cluster")
