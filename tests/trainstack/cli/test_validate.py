"""`trainstack validate` against a cluster that answers as kubectl would."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from infra.outputs.cluster import ValidationRun
from tests.trainstack.cli.command import run_json
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli import validate
from trainstack.cli.app import app
from trainstack.node_turns import HOSTNAME

RUN = ValidationRun(pool="a100", job="-", namespace="smoke", result_uri="-", schedule="smoke-schedule-a100")
LABELS = {"kueue.x-k8s.io/queue-name": "smoke-schedule", "kueue.x-k8s.io/priority-class": "background"}
POOL_TERM = {"key": "trainstack.dev/pool", "operator": "In", "values": ["a100"]}
REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": [POOL_TERM]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}}
CRON_JOB = {
    "metadata": {"name": "smoke-schedule-a100", "namespace": "smoke"},
    "spec": {
        "jobTemplate": {
            "metadata": {"labels": LABELS},
            "spec": {"completions": 2, "template": {"spec": {"affinity": AFFINITY}}},
        }
    },
}


class Cluster:
    """Nodes of one pool, of which some are busy; every run on the others passes."""

    def __init__(self, nodes: Sequence[str], busy: Sequence[str] = ()) -> None:
        self.nodes, self.busy = nodes, {*busy}
        self.jobs: dict[str, Any] = {}
        self.deleted: list[str] = []

    def ask(self, arguments: Sequence[str], given: str | None = None) -> str:
        if given:
            job = json.loads(given)
            self.jobs[job["metadata"]["name"]] = job
            return ""
        words = [word for word in arguments if not word.startswith("--")]
        if words[0] == "delete":
            self.deleted.append(words[2])
            return ""
        return json.dumps(self._found(words))

    def _found(self, words: Sequence[str]) -> Any:
        if words[1] == "cronjob":
            return CRON_JOB
        if words[1] == "nodes":
            return {"items": [{"metadata": {"labels": {HOSTNAME: name}}} for name in self.nodes]}
        if words[1] == "pods":
            ended = {"terminated": {"exitCode": 0, "message": "PASS all is well\nmore"}}
            return {"items": [{"status": {"containerStatuses": [{"state": ended}]}}]}
        job = self.jobs[words[2]]
        done = [{"type": "Complete", "status": "True"}]
        return {**job, "status": {} if self.busy & {*on(job)} else {"conditions": done}}


def on(job: Any) -> list[str]:
    """The nodes that a Job may run on."""
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0] == POOL_TERM, "its pool stays its pool"
    return list(term["matchExpressions"][1]["values"])


def test_every_node_is_validated_with_two_others_in_the_queue_of_the_schedule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = Cluster(["c", "a", "b"])
    assert validate.in_turns(cluster.ask, RUN, "a100", 60).passed
    assert [on(job) for job in cluster.jobs.values()] == [["a", "b"], ["b", "c"], ["c", "a"]]
    for name, job in cluster.jobs.items():
        assert name.startswith("smoke-schedule-a100-") and len(name) <= 47 + 7
        assert job["metadata"]["labels"] == LABELS and job["spec"]["ttlSecondsAfterFinished"] == 24 * 3600
    assert capsys.readouterr().out.splitlines()[0] == "a + b: PASS all is well"


def test_nodes_that_stay_busy_are_left_alone_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(["a", "b", "c"], busy=["a"])
    assert not validate.in_turns(cluster.ask, RUN, "a100", 0).passed
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("a + b: ") and said[-1] == "not validated: a"
    assert len(cluster.deleted) == 2, "their Jobs wait for nothing any more"


def test_a_pool_with_too_few_nodes_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        validate.in_turns(Cluster(["a"]).ask, RUN, "a100", 60)
    assert caught.value.codes == (("too-few-nodes", "--pool"),)


def test_a_pool_that_is_not_validated_is_named_beside_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = EXPORTED.model_copy(update={"smoke": (RUN,)})
    monkeypatch.setattr(validate, "deployed", lambda *_, **__: (exported, None))
    done = CliRunner().invoke(app, ["validate", "-s", "dev", "--pool", "l4"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("pool-without-validation", "--pool"),)


def test_the_result_of_all_pools_is_a_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = validate.in_turns(Cluster(["a", "b", "c"], busy=["a"]).ask, RUN, "a100", 0, to_stderr=True)
    assert capsys.readouterr().out == ""
    exported = EXPORTED.model_copy(update={"smoke": (RUN,)})
    monkeypatch.setattr(validate, "deployed", lambda *_, **__: (exported, None))
    monkeypatch.setattr(validate, "in_turns", lambda *_, **__: result)
    code, found = run_json("validate", "-s", "dev")
    assert (code, found["passed"]) == (1, False)
    assert [(one["pool"], one["not_validated"]) for one in found["pools"]] == [("a100", ["a"])]
