"""Buckets of mounted datasets, when pods no longer mount them."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from pulumi import automation

from components.gcp.storage.tiers import GcpStorage
from infra.engine.plan import PreviewPlan
from rehearsal.client import Rehearsal
from rehearsal.dataplane import folders
from tests.components.gcp.storage.cloud import DEFAULTS
from trainstack.plans.losses import losses, retained

Select = Callable[[Callable[[], None]], automation.Stack]
FOLDERS = {"dataset_folders": ["vision"]}


def program(**more: Any) -> Callable[[], None]:
    return lambda: void(GcpStorage("dev-storage", cast(Any, DEFAULTS | {"project": "research"} | more)))


def void(_: GcpStorage) -> None:
    """Programs return nothing."""


def buckets(stack: automation.Stack) -> dict[str, str]:
    """The ids of the buckets in the state, by name in the program."""
    found = cast(Any, stack.export_stack().deployment)["resources"]
    return {
        one["urn"].rpartition("::")[2]: one["id"]
        for one in found
        if one["type"] == "gcp:storage/bucket:Bucket"
    }


def planned(stack: automation.Stack) -> PreviewPlan:
    plan = PreviewPlan()
    cast(Any, plan.listening(lambda on_event: cast(Any, stack.preview(on_event=on_event))))(lambda _: None)
    return plan


@pytest.mark.parametrize("discard", [False, True])
def test_claims_are_switched_off_and_their_data_stays_unless_it_is_discarded(
    stack: Select, rehearsal: Rehearsal, *, discard: bool
) -> None:
    deployed = stack(program(**FOLDERS, force_destroy=discard))
    deployed.set_config("gcp:project", automation.ConfigValue("research"))
    deployed.up()
    before = buckets(deployed)
    mounted = {name: before[name] for name in ("dev-storage-shared-datasets", "dev-storage-datasets-vision")}
    for bucket in mounted.values():
        file = folders.bucket(rehearsal.home, bucket, "gs") / "data.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    without = stack(program(force_destroy=discard))
    steps = planned(without).steps
    named = list(losses(steps) if discard else retained(steps))
    assert {line.split()[0] for line in named} == mounted.keys()
    assert list(retained(steps) if discard else losses(steps)) == []
    without.up()
    assert buckets(deployed).keys() == before.keys() - mounted.keys()
    for bucket in mounted.values():
        assert (folders.first_file(folders.bucket(rehearsal.home, bucket, "gs")) is None) == discard
