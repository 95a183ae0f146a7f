"""Faults of a run, on a minimal cloud."""

import dataclasses
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.engine.golang import ROOT
from infra.errors import UserError
from rehearsal.client import Rehearsal
from rehearsal.core import fault_injection, faults
from rehearsal.core.fault_injection import FaultInjector, FaultPlan
from rehearsal.core.journal import Journal, Journaled
from rehearsal.core.model import Call, Diff, ProviderInstance, RefusalError
from rehearsal.core.state import State
from rehearsal.core.wrapper import Wrapper
from tests.rehearsal.driver import refused

GROUP, ROLE = "aws:eks/nodeGroup:NodeGroup", "aws:iam/role:Role"


class Plain(Wrapper):
    """Stores resources in a state."""

    def __init__(self, state: State) -> None:
        self.package, self.version, self.state, self.drawn = "aws", "1.0.0", state, 0

    def create(self, call: Call, inputs: dict[str, Any], *, preview: bool) -> tuple[str, dict[str, Any]]:
        self.drawn += 1
        made, outputs = f"{call.name}-{self.drawn}", {"arn": f"arn:{call.name}", **inputs}
        self.state.insert(
            package="aws",
            type=call.type,
            scope="here",
            id=made,
            urn=call.urn,
            name=call.name,
            inputs=inputs,
            outputs=outputs,
        )
        return made, outputs

    def diff(self, call: Call, id: str, old_inputs: Any, old_outputs: Any, new: Any) -> Diff:
        return Diff()

    def delete(self, call: Call, id: str, outputs: dict[str, Any]) -> None:
        record = self.state.get("aws", call.type, "here", id)
        assert record
        if record.inputs.get("protected"):
            raise RefusalError("Protected", "no")
        self.state.remove(record)


@dataclasses.dataclass
class Run:
    cloud: FaultInjector
    state: State
    messages: list[str]
    home: Path
    engine: int = 0

    def call(self, token: str, name: str) -> Call:
        urn = f"urn:pulumi:dev::p::{token}::{name}"
        return Call(
            ProviderInstance("aws"), token, urn, threading.Event(), lambda _, text: self.messages.append(text)
        )

    def create(self, name: str, token: str = GROUP, **inputs: Any) -> str:
        return self.cloud.create(self.call(token, name), inputs, preview=False)[0]

    def ids(self) -> list[str]:
        return [record.id for record in self.state.find()]


Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setattr(fault_injection, "_RETRY_AFTER_S", 0.01)
    monkeypatch.setattr(fault_injection, "_LONGEST_BACKOFF_S", 0.01)

    def start(*texts: str, scenario: str = "") -> Run:
        file = None
        if scenario:
            file = tmp_path / "scenario.yaml"
            file.write_text(scenario)
        read = faults.parse(texts, file)
        Rehearsal(tmp_path / "home").set_faults(read.model_dump(mode="json", exclude_defaults=True))
        state = State(tmp_path / "state.sqlite")
        inside = Journaled(Plain(state), Journal(state))
        plan = FaultPlan(tmp_path / "home" / "faults.json")
        return Run(FaultInjector(inside, plan, 0), state, [], tmp_path / "home")

    return start


def test_the_nth_operation_is_refused_with_the_code_of_the_service(start: Start) -> None:
    run = start("aws:eks/nodeGroup:capacity@2")
    run.create("a")
    run.create("other", "aws:ec2/vpc:Vpc")
    with pytest.raises(RefusalError, match="InsufficientInstanceCapacity") as refused:
        run.create("b")
    assert refused.value.code == "AsgInstanceLaunchFailures"
    run.create("b")
    assert run.ids() == ["a-1", "other-2", "b-3"]


def test_a_fault_may_hit_a_name_or_a_deletion(start: Start) -> None:
    run = start("aws:*:quota@b", "aws:eks/nodeGroup:delete.slow=0.2@1")
    run.create("a")
    refused("VcpuLimitExceeded", run.create, "b")
    before = time.monotonic()
    run.cloud.delete(run.call(GROUP, "a"), "a-1", {})
    assert time.monotonic() - before > 0.19


def test_a_login_that_ends_refuses_all_that_follows_until_the_next_command(start: Start) -> None:
    run = start("aws:eks/nodeGroup:expired@2")
    run.create("a")
    for token in (GROUP, ROLE):
        refused("security token included in the request is expired", run.create, "b", token)
    with pytest.raises(RefusalError, match="ExpiredTokenException"):
        run.cloud.delete(run.call(GROUP, "a"), "a-1", {})
    assert run.ids() == ["a-1"]
    Rehearsal(run.home).set_faults({})
    run.create("b")
    assert run.ids() == ["a-1", "b-2"]


@pytest.mark.parametrize("kind", ["throttling", "transient"])
def test_transient_faults_are_retried_up_to_the_limit_of_the_provider(start: Start, kind: str) -> None:
    run = start(f"aws:eks/nodeGroup:{kind}=3@1")
    run.create("a")
    assert len(run.messages) == 3 and "try 3" in run.messages[-1]
    run = start(f"aws:eks/nodeGroup:{kind}=99@1")
    with pytest.raises(RefusalError):
        run.create("b")


def test_a_slow_create_ends_with_the_resources_own_timeout_or_the_engine(start: Start) -> None:
    run = start("aws:eks/nodeGroup:slow=30")
    call = dataclasses.replace(run.call(GROUP, "a"), timeout_s=0.05)
    refused("timeout", run.cloud.create, call, {}, preview=False)
    run = start("aws:eks/nodeGroup:slow=31")
    call = run.call(GROUP, "a")
    call.cancelled.set()
    refused("cancelled", run.cloud.create, call, {}, preview=False)
    assert run.ids() == []


def test_a_new_resource_is_hidden_from_others_for_a_while(start: Start) -> None:
    run = start("aws:iam/role:eventual=0.3")
    before = time.monotonic()
    run.create("role", ROLE)
    run.create("free")
    assert run.messages == []  # no wait
    run.create("group", nodeRoleArn="arn:role")
    assert time.monotonic() - before > 0.3
    assert "arn:role" in run.messages[-1]


def test_a_scenario_with_a_seed_hits_the_same_resources_in_any_order(start: Start) -> None:
    def hit(seed: int, names: list[str]) -> set[str]:
        text = f"seed: {seed}\nfaults:\n- {{on: 'aws:*', kind: capacity, probability: 0.4}}\n"
        run, found = start(scenario=text), set()
        for name in names:
            try:
                run.create(f"{seed}{name}-{names[0]}"[: len(str(seed)) + len(name)])
            except RefusalError:
                found.add(name)
        run.state.close()
        return found

    names = [f"n{index}" for index in range(40)]
    first = hit(1, names)
    assert 5 < len(first) < 30
    assert hit(1, names[::-1]) == first
    assert hit(2, names) != first


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("smoke:slow-rnk=1", "smoke:slow-rank=RANK"),
        ("smoke:gremlins", "smoke:slow-rank=RANK"),
        ("aws:*:capcity@2", "TYPE:capacity"),
        ("dance", None),
    ],
)
def test_a_misspelled_fault_gets_the_nearest_form_and_the_page(text: str, form: str | None) -> None:
    with pytest.raises(UserError) as refused:
        faults.parse([text])
    fix = refused.value.problems[0].fix
    assert "docs/reference/faults.md" in fix and (f"`{form}`" in fix) is (form is not None)


def test_the_page_lists_every_form() -> None:
    page = (ROOT / "docs" / "reference" / "faults.md").read_text()
    assert re.findall(r"^\| `(.*?)` \|", page, re.MULTILINE) == [*faults.FORMS]


def test_every_bad_fault_is_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("faults:\n- {on: 'aws:*', kind: flood}\nquota: {}\n")
    texts = ["smoke:slow-rank=1", "aws:x:dance", "azure:x:slow", "aws:x:slow=-1", "aws:x:delete.quota"]
    with pytest.raises(UserError) as refused:
        faults.parse(texts, file)
    assert [one.value for one in refused.value.problems if one.code == "unknown-fault"] == texts[1:]
    invalid = {("fault-scenario-invalid", f"s.yaml: {field}") for field in ("faults.0.kind", "quota")}
    assert set(refused.value.codes) == {("unknown-fault", "--fault"), *invalid}


def test_each_interruption_hits_its_job_once(start: Start, tmp_path: Path) -> None:
    start("jobs:interrupted=2.5@b", "jobs:interrupted=4", scenario="interruptions: [{seconds: 1}]")
    plan = FaultPlan(tmp_path / "home" / "faults.json")
    assert [plan.interruption("a"), plan.interruption("a"), plan.interruption("a")] == [1.0, 4.0, None]
    assert [plan.interruption("b"), plan.interruption("b")] == [2.5, None]
    with pytest.raises(UserError, match="greater than 0"):
        faults.parse(["jobs:interrupted=0"])


def test_an_unconfirmed_create_is_deleted(start: Start) -> None:
    run = start()
    run.create("a")
    run.create("a")
    assert run.ids() == ["a-2"]
    run.cloud.diff(run.call(GROUP, "a"), "a-2", {}, {}, {})  # now an engine has confirmed it
    run.create("a")
    assert run.ids() == ["a-2", "a-3"]


def test_the_urn_of_an_alias_confirms_as_well(start: Start) -> None:
    run = start()
    run.create("a")
    run.cloud.diff(run.call(GROUP, "renamed"), "a-1", {}, {}, {})
    run.create("a")
    assert run.ids() == ["a-1", "a-2"]


def test_an_unconfirmed_protected_resource_is_deleted_too(start: Start) -> None:
    run = start()
    run.create("a", protected=True)
    run.create("a")
    assert run.ids() == ["a-2"]
