"""The size of a node group is the autoscaler's, and its bounds are the spec's."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pytest
from pulumi.runtime import set_mocks

from components.aws.pools.live_size import GroupName, LiveSizeArgs, live_sizes, scaling, shrinking_problems
from tests.components.recorder import Recorder

UUID = "12c4f1e0-0b6f-4f5e-8a3e-5d1f6f0f4a11"


def live(least: int, most: int, nodes: int) -> LiveSizeArgs:
    return {"min_size": least, "max_size": most, "nodes": nodes}


@pytest.mark.parametrize(
    ("wish", "now", "sent", "ignored"),
    [
        ((0, 4), None, (0, 4, 0), True),  # a new group
        ((0, 4), live(0, 4, 3), (0, 4, 0), True),  # nothing changes: nothing is sent
        ((0, 6), live(0, 4, 3), (0, 6, 3), False),  # more room, around what runs
        ((2, 4), live(0, 4, 0), (2, 4, 2), False),  # EKS refuses fewer nodes than the smallest size
        ((0, 3), live(0, 4, 3), (0, 3, 3), False),
    ],
)
def test_what_is_sent(
    wish: tuple[int, int], now: LiveSizeArgs | None, sent: tuple[int, int, int], ignored: bool
) -> None:
    size = scaling(*wish, now)
    assert (size.config.min_size, size.config.max_size, size.config.desired_size) == sent
    assert size.ignored == (["scalingConfig.desiredSize"] if ignored else [])


def test_a_largest_size_below_what_runs_is_refused() -> None:
    (problem,) = shrinking_problems("a100.max_size", 2, [live(0, 4, 1), live(0, 4, 2)])
    assert problem.path == "a100.max_size" and "3 nodes run" in problem.rule
    assert shrinking_problems("a100.max_size", 3, [live(0, 4, 3)]) == []
    assert shrinking_problems("a100.max_size", 0, []) == []


@pytest.mark.parametrize("most", [4, 6])
def test_more_nodes_over_the_zones_than_the_largest_size_stay_where_it_does_not_shrink(most: int) -> None:
    assert shrinking_problems("a100.max_size", most, [live(0, 4, 4), live(0, 4, 3)]) == []
    (problem,) = shrinking_problems("a100.max_size", 3, [live(0, 4, 1), live(0, 4, 3)])
    assert problem.code == "pool-shrinks-below-live-size"


def looked_up(
    names: list[str], zones: Sequence[str] = ("us-east-1b",)
) -> tuple[Mapping[str, LiveSizeArgs], list[Any]]:
    asked: list[Any] = []

    def groups(args: Any) -> Mapping[str, object]:
        asked.append(args)
        return {"id": "here", "names": names, "arns": []}

    def group(args: Any) -> Mapping[str, object]:
        sizes = {"minSize": 0, "maxSize": 4, "desiredCapacity": 3}
        return {"id": args["name"], "name": args["name"], **sizes, "availabilityZones": list(zones)}

    recorder = Recorder(
        answers={"aws:autoscaling/getAmiIds:getAmiIds": groups, "aws:autoscaling/getGroup:getGroup": group}
    )
    set_mocks(recorder, project="trainstack", stack="dev", preview=False)
    found: dict[str, LiveSizeArgs] = {}
    run: Any = pulumi.runtime.test
    wanted = [
        GroupName("dev-a100-nodes-us-east-1b", "us-east-1b", "dev-a100-nodes"),
        GroupName("dev-a100-nodes-us-east-1c", "us-east-1c", "dev-a100-nodes"),
    ]
    run(lambda: found.update(live_sizes("dev", wanted, pulumi.InvokeOptions())))()
    return found, asked


def test_groups_are_found_by_cluster_and_name() -> None:
    found, asked = looked_up([f"eks-dev-a100-nodes-us-east-1b-1a2b3c4-{UUID}", f"eks-other-1a2b3c4-{UUID}"])
    assert found == {"dev-a100-nodes-us-east-1b": live(0, 4, 3)}
    assert asked == [{"filters": [{"name": "tag:eks:cluster-name", "values": ["dev"]}]}]


def test_a_group_with_a_name_of_an_earlier_version_is_that_of_its_zone() -> None:
    former = [f"eks-dev-a100-nodes-1a2b3c4-{UUID}"]
    assert looked_up(former)[0] == {"dev-a100-nodes-us-east-1b": live(0, 4, 3)}
    assert looked_up(former, ["us-east-1b", "us-east-1c"])[0] == {}, "it is replaced"


def test_before_the_first_deploy_there_is_none() -> None:
    assert looked_up([])[0] == {}


def test_a_group_that_is_being_replaced_has_no_size() -> None:
    names = [f"eks-dev-a100-nodes-us-east-1b-{number}-{UUID}" for number in ("1a2b3c4", "5d6e7f8")]
    assert looked_up(names)[0] == {}
