"""The shipped environment, deployed by the real engine in the emulated clouds, from preview to destroy."""

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.settings import RuleSettings
from policies.sources import state
from policies.sources.live.join import joined
from tests.policies.sources.live.remade.twins import lost, twins
from tests.policies.sources.live.remade.verdicts import compared
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import NOTHING, ROOT, STACK, Life

pytestmark = [pytest.mark.alone, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from life.home(tmp_path_factory.mktemp("medium"))


@pytest.fixture(scope="module")
def lived(home: Path) -> Life:
    return life.live(home)


def test_training_that_does_not_scale_fails_the_deployment_with_figure_and_culprit(lived: Life) -> None:
    done = lived.failed.done
    assert done.returncode == 1, lived.failed.output
    assert "up failed" in done.stdout
    assert "FAIL" in done.stdout
    assert "expected >= 0.80" in done.stdout or "tolerated: 1.15x" in done.stdout
    assert "suspect" in done.stdout and "rank 1 on" in done.stdout
    assert "95% interval" in done.stdout and "cause: " in done.stdout and "Next: " in done.stdout
    assert "Gate: closed" in done.stdout
    assert "Traceback" not in lived.failed.output


def test_the_next_up_runs_only_the_validation_again_and_succeeds(lived: Life) -> None:
    before, after, done = lived.failed.resources, lived.passed.resources, lived.passed.done
    assert done.returncode == 0, lived.passed.output
    # Created is only what waited for a passed gate: the schedule that repeats it, with its Service and code.
    # Replaced are the validation and the Job that watches it.
    assert "4 created" in done.stdout and "2 replaced" in done.stdout
    assert after == {**before, "kubernetes": before["kubernetes"] + 3}
    for expected in ("cost per month", "scaling_efficiency", "MLflow ", "result.json", "destroy -s dev-aws"):
        assert expected in done.stdout, expected
    assert lived.result["verdict"] == "PASS"
    assert len(lived.result["cluster"]["ranks"]) == 2


def test_status_shows_the_last_verdict_and_the_gate(lived: Life) -> None:
    found = re.search(
        r"^validation +(trainstack-smoke/smoke-\S+) failed .* UTC on 2 nodes of pool a100: FAIL .*"
        r"^gate +closed; `trainstack up` validates again$",
        lived.closed, re.MULTILINE | re.DOTALL,
    )  # fmt: skip
    assert found, lived.closed
    assert "no `up`" in lived.closed
    assert re.search(rf"^validation +{re.escape(found[1])} passed ", lived.opened, re.MULTILINE)
    assert re.search(r"^gate +open", lived.opened, re.MULTILINE), lived.opened
    named = re.search(r"^nodes +(\S+), (\S+): PASS ", lived.opened, re.MULTILINE)
    assert named, lived.opened
    # Which pod is on which of the nodes, the scheduler decides each time.
    assert any(f"on node {name}" in lived.failed.done.stdout for name in named.groups())


def test_the_failed_and_the_passed_run_are_both_on_record(lived: Life) -> None:
    decided = [run for run in lived.runs if run.data.tags.get("trainstack.verdict") != "INCONCLUSIVE"]
    failed, *_, passed = decided
    assert (failed.info.status, passed.info.status) == ("FAILED", "FINISHED")
    for run in (failed, passed):
        tags, data = run.data.tags, run.data
        assert {"owner", "team", "task", "dataset", "status"} <= tags.keys()
        assert tags["trainstack.stack"] == STACK and tags["trainstack.instance_type"] == "p4d.24xlarge"
        assert data.params and data.metrics
    assert passed.data.tags["trainstack.verdict"] == "PASS"


def test_an_unchanged_up_changes_nothing_and_trains_nothing(lived: Life) -> None:
    assert lived.unchanged.done.returncode == 0, lived.unchanged.output
    assert lived.unchanged.results == lived.passed.results != {}


def test_the_native_cli_sees_the_same_state(lived: Life) -> None:
    outputs = lived.outputs
    assert outputs["trainstack"]["stack"] == STACK
    (smoke,) = outputs["trainstack"]["smoke"]
    assert (smoke["pool"], smoke["schedule"]) == ("a100", "smoke-schedule-a100")
    assert smoke["alert_topic"].startswith("arn:aws:sns:us-east-1:")
    assert outputs["mlflow_url"].startswith("http://mlflow.mlflow.svc")
    assert "exec" in outputs["kubeconfig"]
    committed = (ROOT / "stacks" / "config" / f"Pulumi.{STACK}.yaml").read_text()
    assert "encryptionsalt" not in committed, "a rehearsal must not write into the stack file"


def test_the_state_passes_every_rule_without_a_waiver(lived: Life) -> None:
    assert lived.audited.stderr == ""
    outcomes = json.loads(lived.audited.stdout)["outcomes"]
    broken = [one for one in outcomes if one["result"] not in ("pass", "not-applicable")]
    assert broken == []
    assert lived.audited.returncode == 0


def test_an_account_with_the_same_resources_gets_the_same_verdicts(home: Path, lived: Life) -> None:
    """Made again in an emulated account from the state: no verdict differs, and nothing has drifted."""
    same = twins(state.read(home.parent / "export.json"))
    found = compared(same, RuleSettings(today=datetime.datetime.now(datetime.UTC).date()))
    assert (found.alone, found.joined) == ([], [])
    assert len([rule for rule, result in found.said if result == "pass"]) > 40
    differences = joined(same.state, same.account).differences
    assert [f"{one.what} {one.resource.kind} {one.path}" for one in differences if not lost(one)] == []


def test_the_webhooks_of_kueue_were_asked_before_its_first_object(lived: Life) -> None:
    (log,) = (text for path, text in lived.written.items() if path.name.startswith("kueue-ready-"))
    assert "ResourceFlavor a100" in log and log.endswith(" 201\n")


def test_no_secret_is_in_the_state_or_in_a_log(lived: Life) -> None:
    assert len(lived.password) >= 20
    assert len(lived.written) >= 4
    assert [path for path, text in lived.written.items() if lived.password in text] == []


def test_destroy_leaves_no_resource_and_no_process(lived: Life) -> None:
    assert lived.destroyed.done.returncode == 0, lived.destroyed.output
    assert lived.destroyed.resources == NOTHING
    assert lived.destroyed.processes == []
