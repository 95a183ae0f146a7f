"""The life of a stack without a cluster in the emulated clouds, by the real engine."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from tests.rehearsal.runs import life, small
from tests.rehearsal.runs.life import UP, Done, Seen, do, native
from tests.rehearsal.runs.small import ADA, EXAMPLES, SMALL, Begun, Lives, until

boto3: Any = importlib.import_module("boto3")  # without type hints
STACK, REGION = "small-aws", "us-west-2"
LIMIT_USD = 0.01
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Life:
    """Output of each command."""

    begun: Begun
    preview: str
    refused: Done
    grown: set[tuple[str, str]]
    """Operations and types of a preview as `medium`."""
    ran: Mapping[str, Done]
    """The first run of each template."""
    runs: str
    endless: str
    """The name of a running job of eve."""
    announced: Mapping[str, Sequence[str]]
    """Runs that lose their identity with a person or a team."""
    stopped: Mapping[str, Any]
    """The service's description of a job above a budget."""
    records: list[dict[str, Any]]
    """Record of the function about it."""
    published: str
    """Published messages."""
    destroyed: Seen


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    for home in life.home(tmp_path_factory.mktemp(STACK)):
        yield _live(home, tmp_path_factory.mktemp("code"))


def _live(home: Path, code: Path) -> Life:
    begun = small.begin(home, STACK)
    preview = do(home, "preview", stack=STACK).stdout
    refused = do(home, "queue", stack=STACK)
    grown = {(step["op"], small.kind(step)) for step in small.grown(home, STACK, _as_medium)}
    ran = small.templates(home, STACK, lambda: _interrupted(home))
    runs = do(home, "runs", stack=STACK).stdout
    endless = small.endless(home, STACK, code / "forever")
    announced = small.announced(home, STACK)
    stopped = _above_budget(home, endless)
    return Life(
        begun=begun,
        preview=preview,
        refused=refused,
        grown=grown,
        ran=ran,
        runs=runs,
        endless=endless,
        announced=announced,
        stopped=stopped,
        records=small.records(home),
        published="".join(file.read_text() for file in (home / "messages").glob("*.jsonl")),
        destroyed=small.end(home, STACK),
    )


def _interrupted(home: Path) -> Done:
    """A fine-tuning whose machine is interrupted."""
    arguments = (str(EXAMPLES / "finetune"), *ADA, "--spot", "--fault", "jobs:interrupted=4", "--", *SMALL)
    return do(home, "run", *arguments, "--steps", "40", stack=STACK)


def _as_medium(config: Any) -> None:
    """The changes of docs/how-to/growing.md."""
    config["trainstack:profile"] = "medium"
    spec = config["trainstack:spec"]
    zones = spec["layout"]["zones"]
    pool = {"name": "l4", "machine": "g6.xlarge", "purpose": "fine_tuning", "purchase": {"kind": "spot"}}
    spec["layout"] = {"zones": zones, "pools": [{**pool, "zones": zones, "rdma": False, "max_nodes": 4}]}
    spec["teams"] = [{"name": name, "gpus": {"l4": 1}} for name in ("vision", "language")]
    spec["on"]["admin_arns"] = ["arn:aws:iam::123456789012:role/platform"]
    spec["tracking"] = {"image": f"123456789012.dkr.ecr.{REGION}.amazonaws.com/mlflow@sha256:{'0' * 64}"}
    spec["data"]["shared_fs"] = None


def _above_budget(home: Path, name: str) -> Mapping[str, Any]:
    """A job that would never end, a budget that becomes smaller, and the function that enforces it."""
    smaller = life.beside_others(home, STACK, _smaller_budget)
    done = native(home, *UP, "--config-file", smaller, stack=STACK)
    assert done.returncode == 0, done.stdout + done.stderr
    with Rehearsal(home).serving() as environment:
        login = {
            "region_name": REGION,
            "endpoint_url": environment["AWS_ENDPOINT_URL_LAMBDA"],
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
        }
        budgets, jobs = boto3.client("budgets", **login), boto3.client("sagemaker", **login)
        eves = {"AccountId": "123456789012", "BudgetName": f"{STACK}-person-eve-monthly"}
        until(lambda: _spent(budgets.describe_budget(**eves)) >= LIMIT_USD)
        answer = boto3.client("lambda", **login).invoke(FunctionName=_function(home), Payload="{}")
        assert "FunctionError" not in answer, answer["Payload"].read()

        def job() -> Mapping[str, Any]:
            seen: Mapping[str, Any] = jobs.describe_training_job(TrainingJobName=name)
            return seen

        until(lambda: job()["TrainingJobStatus"] in ("Completed", "Failed", "Stopped"))
        return job()


def _spent(answer: Mapping[str, Any]) -> float:
    return float(answer["Budget"]["CalculatedSpend"]["ActualSpend"]["Amount"])


def _smaller_budget(config: Any) -> None:
    """Seven seconds of the machine."""
    (eve,) = (one for one in config["trainstack:spec"]["layout"]["people"] if one["name"] == "eve")
    eve["monthly_usd"] = LIMIT_USD


def _function(home: Path) -> str:
    """The name of the function that budgets call."""
    state = State(home / "state.sqlite")
    try:
        names = [str(one.outputs["name"]) for one in state.find(type="aws:lambda/function:Function")]
    finally:
        state.close()
    (name,) = (one for one in names if "budgets" in one)
    return name


class TestLife(Lives):
    """With tests that are specific to AWS."""

    stack = STACK
    says = ("person ada (vision): arn:aws:iam::",)
    price = "$0.11 (1 x 0.1 h x $1.127)"

    def test_a_preview_itemises_what_an_idle_stack_costs(self, lived: Life) -> None:
        for item in (
            "NAT gateways (1)",
            "public addresses (1)",
            "KMS keys (3)",
            "total of known",
            "jobs on l4 (",
        ):
            assert item in lived.preview, lived.preview

    def test_a_command_for_clusters_reports_that_there_is_none(self, lived: Life) -> None:
        assert lived.refused.returncode == 2
        assert "has no cluster" in lived.refused.stderr and "Traceback" not in lived.refused.stderr

    def test_a_budget_stops_jobs_above_it_and_reports_them(self, lived: Life) -> None:
        assert lived.stopped["TrainingJobStatus"] == "Stopped"
        (record,) = lived.records
        assert (record["name"], record["action"]) == (lived.stopped["TrainingJobName"], "stop")
        assert record["spent_usd"] >= record["limit_usd"] == LIMIT_USD
        assert lived.stopped["TrainingJobName"] in lived.published

    def test_a_stack_that_grows_keeps_network_and_buckets_as_documented(self, lived: Life) -> None:
        stays = {"aws:ec2/vpc:Vpc", "aws:s3/bucket:Bucket", "aws:ec2/natGateway:NatGateway"}
        for kind in stays:
            assert {op for op, one in lived.grown if one == kind} <= {"same", "update"}, kind
        gone = {kind for op, kind in lived.grown if op == "delete"}
        assert {"aws:sagemaker/mlflowApp:MlflowApp", "aws:sagemaker/domain:Domain"} <= gone
        assert ("create", "aws:eks/cluster:Cluster") in lived.grown
