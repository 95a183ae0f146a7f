"""`trainstack cluster`: which nodes it takes."""

import pytest

from infra.catalog.aws import facts as aws
from infra.catalog.gcp import facts as google
from infra.errors import UserError
from trainstack.cli.cluster import _counts, _zone


def test_machines_of_both_clouds_are_counted() -> None:
    wanted = ["p4d.24xlarge=2", "a3-megagpu-8g=1", "p4d.24xlarge=3"]
    assert _counts(wanted) == {"p4d.24xlarge": 5, "a3-megagpu-8g": 1}


def test_a_machine_stands_in_a_zone_of_its_own_cloud() -> None:
    assert {_zone(kind) for kind in aws.instance_types} == {"us-east-1a"}
    assert {_zone(kind) for kind in google.machine_types} == {"us-central1-a"}


def test_everything_wrong_is_refused_at_once() -> None:
    with pytest.raises(UserError) as refused:
        _counts(["m6i.large=1", "p4d.24xlarge=0", "a3-megagpu-8g"])
    assert [problem.value for problem in refused.value.problems] == [
        "m6i.large=1", "p4d.24xlarge=0", "a3-megagpu-8g",
    ]  # fmt: skip
    assert all("a3-megagpu-8g" in problem.fix for problem in refused.value.problems)
