"""Changes outside of a program: refusals, drift and repair, as with the real services."""

from collections.abc import Callable

import pulumi
import pulumi_aws as aws
import pytest
from pulumi import automation

from infra.errors import UserError
from rehearsal import drifting
from rehearsal.client import Rehearsal
from rehearsal.core.drift import put
from tests.rehearsal.driver import refused
from tests.rehearsal.runs.updates import counts

Select = Callable[[Callable[[], None]], automation.Stack]


def network() -> None:
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={"team": "a"})
    subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24")
    pulumi.export("vpc", vpc.id)
    pulumi.export("subnet", subnet.id)


def test_values_are_set_at_paths_and_the_rest_stays() -> None:
    tree = {"a": [{"b": 1}], "tags": {"x.y": "1"}}
    assert put(tree, "a[0].b", 2) == {"a": [{"b": 2}], "tags": {"x.y": "1"}}
    assert put(tree, "a[1]", 3)["a"] == [{"b": 1}, 3]
    assert put(tree, 'tags["x.y"]', None)["tags"] == {}
    assert tree == {"a": [{"b": 1}], "tags": {"x.y": "1"}}
    refused("index 5", put, tree, "a[5]", 1)


def test_drift_is_seen_and_repaired_and_deletions_too(
    rehearsal: Rehearsal, stack: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINSTACK_REHEARSAL_HOME", str(rehearsal.home))
    stack_ = stack(network)
    outputs = stack_.up().outputs
    message = drifting.change("vpc", ["enableDnsHostnames=true", "tags.team=b"], None)
    assert outputs["vpc"].value in message
    preview = counts(stack_.preview(refresh=True).change_summary)
    assert preview.get("update") == 1
    repaired = stack_.up(refresh=True)
    assert repaired.summary.result == "succeeded"
    assert counts(stack_.preview(refresh=True).change_summary) == {"same": 3}
    with pytest.raises(UserError, match="DependencyViolation"):
        drifting.delete("vpc", None)
    assert outputs["subnet"].value in drifting.delete("subnet", None)
    again = stack_.up(refresh=True)
    assert again.outputs["subnet"].value != outputs["subnet"].value
    stack_.destroy()
    assert rehearsal.status()["resources"]["aws"] == 0


def test_impossible_changes_are_refused(
    rehearsal: Rehearsal, stack: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINSTACK_REHEARSAL_HOME", str(rehearsal.home))

    def refused(urn: str, assignment: str) -> UserError:
        with pytest.raises(UserError) as caught:
            drifting.change(urn, [assignment], None)
        return caught.value

    missing = refused("vpc", "x=1")
    assert missing.codes == (("resource-not-found", "URN"),) and "NotFound" not in str(missing)
    stack(network).up()
    assert "enableDnsSupport" in str(refused("vpc", "enableDnsSuport=false"))
    assert "did you mean" in str(refused("vpcc", "enableDnsSupport=false"))
    assert refused("vpc", "enableDnsSupport").codes == (("drift-not-an-assignment", "KEY=VALUE"),)
