"""The life of a stack without a cluster in the emulated clouds, by the real engine: from nothing to none."""

import importlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import NOTHING, ROOT, UNCHANGED, UP, Done, Seen, audited, do, native, seen

boto3: Any = importlib.import_module("boto3")  # without type hints
STACK, REGION = "small-aws", "us-west-2"
EXAMPLES = ROOT / "examples"
ADA = ("--on", "l4", "--max-hours", "0.1", "--as", "ada", "--dataset", "synthetic")
# As small as they can be and still learn something.
LIMIT_USD = 0.01
SMALL = ("--base-steps", "10", "--batch", "8")
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Life:
    """What each command said."""

    made: Seen
    result: Mapping[str, Any]
    status: str
    preview: str
    unchanged: Seen
    grown: set[tuple[str, str]]
    """What a preview as `medium` would do: operations and types."""
    audited: Done
    refused: Done
    ran: Mapping[str, Done]
    """Of each template."""
    runs: str
    stopped: Mapping[str, Any]
    """What the service says of a job above a budget."""
    records: list[Mapping[str, Any]]
    """What the function wrote down about it."""
    told: str
    """What it published."""
    destroyed: Seen


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    for home in life.home(tmp_path_factory.mktemp(STACK)):
        config = life.beside_others(home, STACK)
        made = seen(home, native(home, *UP, "--config-file", config, stack=STACK))
        # Without a passed gate there is nothing further to look at.
        assert made.done.returncode == 0, made.output
        result = json.loads(max(made.results).read_text())
        status = do(home, "status", stack=STACK).stdout
        preview = do(home, "preview", stack=STACK).stdout
        unchanged = seen(home, native(home, *UNCHANGED, "--config-file", config, stack=STACK))
        grown = _grown(home)
        policed = audited(home, STACK)
        refused = do(home, "queue", stack=STACK)
        ran = _templates(home)
        runs = do(home, "runs", stack=STACK).stdout
        stopped = _above_budget(home, tmp_path_factory.mktemp("code") / "forever")
        records = [
            json.loads(file.read_text()) for file in home.glob("s3/*artifacts*/audit/budgets/*/*.json")
        ]
        told = "".join(file.read_text() for file in (home / "messages").glob("*.jsonl"))
        ended = do(home, "destroy", "--yes", stack=STACK)
        Rehearsal(home).wait_until_idle()
        yield Life(
            made=made,
            result=result,
            status=status,
            preview=preview,
            unchanged=unchanged,
            grown=grown,
            audited=policed,
            refused=refused,
            ran=ran,
            runs=runs,
            stopped=stopped,
            records=records,
            told=told,
            destroyed=seen(home, ended),
        )


def _grown(home: Path) -> set[tuple[str, str]]:
    larger = life.beside_others(home, STACK, _as_medium)
    told = native(home, "preview", "--json", "--config-file", larger, stack=STACK)
    assert told.returncode == 0, told.stdout + told.stderr
    steps = json.loads(told.stdout)["steps"]
    return {(step["op"], step["urn"].split("::")[2].split("$")[-1]) for step in steps}


def _as_medium(config: Any) -> None:
    """What docs/growing.md asks for."""
    config["trainstack:profile"] = "medium"
    spec = config["trainstack:spec"]
    zones = spec["layout"]["zones"]
    pool = {"name": "l4", "machine": "g6.xlarge", "purpose": "fine_tuning", "purchase": {"kind": "spot"}}
    spec["layout"] = {"zones": zones, "pools": [{**pool, "zones": zones, "rdma": False, "max_nodes": 4}]}
    spec["teams"] = [{"name": name, "gpus": {"l4": 1}} for name in ("vision", "language")]
    spec["on"]["admin_arns"] = ["arn:aws:iam::123456789012:role/platform"]
    spec["tracking"] = {"image": f"123456789012.dkr.ecr.{REGION}.amazonaws.com/mlflow@sha256:{'0' * 64}"}
    spec["data"]["shared_fs"] = None


def _templates(home: Path) -> Mapping[str, Done]:
    """The first run of each template; the first one loses its spot machine on the way."""

    def run(template: str, *words: str) -> Done:
        return do(home, "run", str(EXAMPLES / template), *ADA, *words, stack=STACK)

    finetune = run("finetune", "--spot", "--fault", "jobs:interrupted=4", "--", *SMALL, "--steps", "40")
    found = re.search(r"^model +(s3://\S+/)model\.tar\.gz$", finetune.stdout, re.MULTILINE)
    assert found, finetune.stdout + finetune.stderr
    return {
        "finetune": finetune,
        "evaluate": run("evaluate", "--script", "evaluate.py", "--data", found[1], "--task", "evaluation"),
        "ddp": run("ddp", "--nodes", "2", "--", "--epochs", "1"),
        "sweep": run(
            "sweep", "--script", "sweep.py", "--", "--trials", "2", "--steps", "8", "--base-steps", "10"
        ),
    }


def _above_budget(home: Path, folder: Path) -> Mapping[str, Any]:
    """A job that would never end, a budget that becomes smaller, and the function that looks after it."""
    folder.mkdir()
    (folder / "train.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(3600)\n")
    eve = ("--on", "l4x4", "--max-hours", "0.1", "--as", "eve", "--dataset", "none", "--detach")
    started = do(home, "run", str(folder), *eve, stack=STACK)
    found = re.search(r"^run +(\S+)$", started.stdout, re.MULTILINE)
    assert found, started.stdout + started.stderr
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
        _until(lambda: _spent(budgets.describe_budget(**eves)) >= LIMIT_USD)
        answer = boto3.client("lambda", **login).invoke(FunctionName=_function(home), Payload="{}")
        assert "FunctionError" not in answer, answer["Payload"].read()

        def job() -> Mapping[str, Any]:
            seen: Mapping[str, Any] = jobs.describe_training_job(TrainingJobName=found[1])
            return seen

        _until(lambda: job()["TrainingJobStatus"] in ("Completed", "Failed", "Stopped"))
        return job()


def _spent(answer: Mapping[str, Any]) -> float:
    return float(answer["Budget"]["CalculatedSpend"]["ActualSpend"]["Amount"])


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.3)


def _smaller_budget(config: Any) -> None:
    """Seven seconds of the machine."""
    (eve,) = (one for one in config["trainstack:spec"]["layout"]["people"] if one["name"] == "eve")
    eve["monthly_usd"] = LIMIT_USD


def _function(home: Path) -> str:
    """The name of the function that budgets wake."""
    state = State(home / "state.sqlite")
    try:
        names = [str(one.outputs["name"]) for one in state.find(type="aws:lambda/function:Function")]
    finally:
        state.close()
    (name,) = (one for one in names if "budgets" in one)
    return name


def test_training_on_two_machines_opens_the_gate(lived: Life) -> None:
    assert lived.result["verdict"] in ("PASS", "INCONCLUSIVE")
    assert len({str(rank["host"]) for rank in lived.result["cluster"]["ranks"]}) == 2
    assert lived.result["mlflow"]["synced"] is True, lived.result["mlflow"]


def test_the_stack_says_who_trains_and_who_may_spend_what(lived: Life) -> None:
    assert "person     ada (vision): arn:aws:iam::" in lived.status
    assert "person eve: $500 a month, stops what runs" in lived.status


def test_a_preview_itemises_what_an_idle_stack_costs(lived: Life) -> None:
    for item in (
        "NAT gateways (1)",
        "public addresses (1)",
        "KMS keys (3)",
        "total of known",
        "jobs on l4 (",
    ):
        assert item in lived.preview, lived.preview


@pytest.mark.parametrize("template", ["finetune", "evaluate", "ddp", "sweep"])
def test_each_template_runs_to_its_end(lived: Life, template: str) -> None:
    done = lived.ran[template]
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\nCOMPLETED  small-aws-ada-{template}-" in done.stdout
    assert re.search(rf"^small-aws-ada-{template}-.* completed ", lived.runs, re.MULTILINE), lived.runs


def test_a_run_shows_its_price_and_its_budgets_before_it_starts(lived: Life) -> None:
    said = lived.ran["finetune"].stdout
    assert "price      at most $0.11 (1 x 0.1 h x $1.127)" in said
    assert "budget     team vision: $" in said and " of $3,000.00 spent this month" in said


def test_a_spot_machine_that_is_taken_away_is_shown_and_costs_no_result(lived: Life) -> None:
    said = lived.ran["finetune"].stdout
    assert "interrupted" in said
    assert said.count("training (") == 2, said
    assert "held-out loss" in said


def test_a_budget_stops_what_runs_above_it_and_says_so(lived: Life) -> None:
    assert lived.stopped["TrainingJobStatus"] == "Stopped"
    (record,) = lived.records
    assert (record["name"], record["action"]) == (lived.stopped["TrainingJobName"], "stop")
    assert record["spent_usd"] >= record["limit_usd"] == LIMIT_USD
    assert lived.stopped["TrainingJobName"] in lived.told


def test_an_unchanged_up_changes_nothing_and_trains_nothing(lived: Life) -> None:
    assert lived.unchanged.done.returncode == 0, lived.unchanged.output
    assert lived.unchanged.resources == lived.made.resources
    assert lived.unchanged.results == lived.made.results != {}


def test_a_stack_that_grows_keeps_network_and_buckets_and_loses_what_the_docs_say(lived: Life) -> None:
    stays = {"aws:ec2/vpc:Vpc", "aws:s3/bucket:Bucket", "aws:ec2/natGateway:NatGateway"}
    for kind in stays:
        assert {op for op, one in lived.grown if one == kind} <= {"same", "update"}, kind
    gone = {kind for op, kind in lived.grown if op == "delete"}
    assert {"aws:sagemaker/mlflowApp:MlflowApp", "aws:sagemaker/domain:Domain"} <= gone
    assert ("create", "aws:eks/cluster:Cluster") in lived.grown


def test_the_state_keeps_every_rule_without_a_waiver(lived: Life) -> None:
    outcomes = json.loads(lived.audited.stdout)["outcomes"]
    assert [one for one in outcomes if one["result"] not in ("pass", "not-applicable")] == []
    assert lived.audited.returncode == 0


def test_a_command_for_clusters_says_that_there_is_none(lived: Life) -> None:
    assert lived.refused.returncode == 2
    assert "has no cluster" in lived.refused.stderr and "Traceback" not in lived.refused.stderr


def test_destroy_leaves_no_resource_and_no_process(lived: Life) -> None:
    assert lived.destroyed.done.returncode == 0, lived.destroyed.output
    assert lived.destroyed.resources == NOTHING
    assert lived.destroyed.processes == []
