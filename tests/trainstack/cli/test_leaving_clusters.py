"""Clusters that leave a large stack: which stacks are refused, named and ended."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from pulumi import automation

from infra import stackspec
from infra.engine.stack import EngineStack
from infra.errors import Problem, UserError
from infra.outputs import manager as manager_outputs
from infra.outputs.cluster import KEY
from trainstack.cli.operations import leaving, unreachable
from trainstack.cli.operations.session import Session

MANAGER, CLUSTER = "large-aws", "large-aws-use1"
OF_CLUSTER = {"worker": {"of": MANAGER, "cluster": "use1"}}


class States:
    """States of stacks by name: the record in their outputs, and resources where there are outputs."""

    def __init__(self, records: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self._records = records
        monkeypatch.setattr(leaving, "open_engine", lambda name, *, rehearse: (self.engine(name), None))

    def engine(self, name: str) -> EngineStack:
        if name not in self._records:
            raise UserError([Problem("--stack", name, "no stack of this name", "", code="stack-missing")])
        return cast(EngineStack, Recorded(self._records[name]))

    def session(self, name: str = CLUSTER) -> Session:
        return Session(name=name, engine=self.engine(name))


class Recorded:
    """A stack in a state with one record in its outputs; None: it was destroyed."""

    def __init__(self, record: object) -> None:
        self._record = record

    def outputs(self) -> automation.OutputMap:
        return {KEY: automation.OutputValue(self._record, secret=False)} if self._record else {}

    def resources(self) -> list[dict[str, Any]]:
        return [{"urn": "urn:cluster", "custom": True}] if self._record else []


def _manager(*clusters: str) -> dict[str, Any]:
    return {
        "schema_version": manager_outputs.SCHEMA,
        "clusters": {name: f"{MANAGER}-{name}" for name in clusters},
    }


def test_a_cluster_to_which_its_manager_sends_jobs_is_not_destroyed(monkeypatch: pytest.MonkeyPatch) -> None:
    states = States({MANAGER: _manager("usw2", "use1"), CLUSTER: OF_CLUSTER}, monkeypatch)
    with pytest.raises(UserError) as refused:
        leaving.refuse_of_manager(states.session())
    (problem,) = refused.value.problems
    assert (problem.value, problem.code) == (CLUSTER, "cluster-of-manager")
    assert f"trainstack up -s {MANAGER}" in problem.fix


@pytest.mark.parametrize(
    "records",
    [
        {MANAGER: _manager("usw2"), CLUSTER: OF_CLUSTER},  # the manager has forgotten it
        {MANAGER: None, CLUSTER: OF_CLUSTER},  # the manager was destroyed, as by `destroy` of all
        {CLUSTER: OF_CLUSTER},  # or never deployed
        {MANAGER: _manager("usw2", "use1"), CLUSTER: None},  # nothing of the cluster is left
        {MANAGER: _manager("usw2", "use1"), CLUSTER: {"worker": None}},  # a stack of one cluster
    ],
)
def test_any_other_stack_may_be_destroyed(
    records: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving.refuse_of_manager(States(records, monkeypatch).session())


def test_clusters_that_left_are_named_while_they_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = stackspec.load_file(MANAGER).spec
    monkeypatch.setattr(
        leaving, "members_left", lambda _: ["large-aws-old", "large-aws-gone", "large-aws-no"]
    )
    States({"large-aws-old": OF_CLUSTER, "large-aws-gone": None}, monkeypatch)
    assert leaving.left_of(spec, rehearse=False) == ["large-aws-old"]
    leaving.name_left(spec, rehearse=False)
    assert "trainstack destroy -s large-aws-old" in capsys.readouterr().err
    assert leaving.left_of(None, rehearse=False) == []


@pytest.mark.parametrize(
    "error",
    [
        "error: configured Kubernetes cluster is unreachable: unable to load schema information",
        "ClusterUnreachable: the control plane does not respond: Read timed out.",
    ],
)
def test_a_cluster_that_does_not_answer_has_a_way_on(error: str) -> None:
    reported = " ".join(unreachable.explained(CLUSTER, ["other", error]))
    assert f"PULUMI_K8S_DELETE_UNREACHABLE=true trainstack refresh -s {CLUSTER} --yes" in reported
    assert not [*unreachable.explained(CLUSTER, ["AccessDenied"])]
