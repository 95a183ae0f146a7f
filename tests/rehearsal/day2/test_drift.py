"""Plans of the engine: what drifted outside of the program, and the digest by which previews are compared."""

from collections.abc import Callable

import pulumi_aws as aws
import pytest
from pulumi import automation

from infra.engine.plan import PreviewPlan, RefreshPlan
from infra.engine.stack import OnEvent, OperationOutcome
from rehearsal.client import Rehearsal

Select = Callable[[Callable[[], None]], automation.Stack]


def program(retention: int = 7) -> Callable[[], None]:
    def run() -> None:
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={"owner": "ml"})
        aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24", availability_zone="us-east-1a")
        topic = aws.sns.Topic("alerts")  # its name ends with characters that the provider draws
        aws.cloudwatch.LogGroup("log", name=topic.name.apply("/logs/{}".format), retention_in_days=retention)

    return run


def urn(kind: str, name: str) -> str:
    return f"urn:pulumi:dev::rehearsed::aws:{kind}::{name}"


def listened(plan: PreviewPlan | RefreshPlan, operation: Callable[..., object]) -> None:
    def run(on_event: OnEvent) -> OperationOutcome:
        operation(on_event=on_event)
        return OperationOutcome(succeeded=True)

    plan.listening(run)(lambda _: None)


def drifted(stack: automation.Stack) -> dict[str, tuple[str, tuple[str, ...]]]:
    plan = RefreshPlan()
    listened(plan, stack.preview_refresh)
    return {one.name: (one.operation, one.changed) for one in plan.steps}


def digest(stack: automation.Stack) -> str:
    plan = PreviewPlan()
    listened(plan, stack.preview)
    assert plan.steps
    return plan.digest


@pytest.fixture
def deployed(stack: Select) -> automation.Stack:
    made = stack(program())
    made.up()
    return made


def test_drift_names_what_was_changed_and_what_is_gone(
    deployed: automation.Stack, rehearsal: Rehearsal
) -> None:
    assert drifted(deployed) == {}
    rehearsal.drift(urn("ec2/vpc:Vpc", "vpc"), {"tags.owner": "mallory"})
    rehearsal.drift(urn("sns/topic:Topic", "alerts"), None)
    found = drifted(deployed)
    assert {name: operation for name, (operation, _) in found.items()} == {
        "vpc": "update",
        "alerts": "delete",
    }
    assert any("tags" in one for one in found["vpc"][1])
    assert drifted(deployed) == found, "the state is as it was"


def test_previews_of_one_plan_have_one_digest(stack: Select) -> None:
    first = digest(stack(program()))
    assert digest(stack(program())) == first
    assert digest(stack(program(retention=14))) != first
