"""Every field of a medium stack's spec does something on each cloud, or is refused with what to do instead."""

import copy
import datetime
import functools
import re
from collections.abc import Mapping
from typing import Any

import pytest

from infra import cost, stackspec
from infra.errors import UserError
from infra.stackspec.load import CONFIG
from infra.stackspec.document import read
from stacks import compose
from tests.components.aws import computed as aws
from tests.components.gcp import computed as gcp
from tests.components.graph import Graph, deploy_graph
from tests.stacks.composition.describe import difference
from tests.stacks.parity.fields import fields
from tests.stacks.parity.model import Estimated, Honoured, Outcome, Refused
from tests.stacks.parity import rows, rows_of_clouds
from tests.stacks.stack_files import at

FILES = {cloud: f"Pulumi.dev-{cloud}.yaml" for cloud in rows.BOTH}
OWN = {"aws": rows_of_clouds.AWS, "gcp": rows_of_clouds.GCP}
GIVEN = {**rows.GIVEN, **rows_of_clouds.GIVEN}
DAY = datetime.date(2026, 11, 25)
# Settings of a stack file that stand beside its spec.
_LONGEST = 2000
_BESIDE = ("name", "region")


def table(cloud: str) -> dict[str, Outcome]:
    return {**{field: row[cloud] for field, row in rows.COMMON.items()}, **OWN[cloud]}


def spec_of(cloud: str, *changes: Mapping[str, Any]) -> stackspec.StackSpec:
    plain = {key.partition(":")[2]: value for key, value in read(CONFIG / FILES[cloud], "f")["config"].items()}
    values = copy.deepcopy(plain) | {"name": "dev"}
    for path, value in (item for change in changes for item in change.items()):
        at(values if path in _BESIDE else values["spec"], path, copy.deepcopy(value))
    return stackspec.load(values.pop("name"), values, "f").spec


def changes_of(cloud: str, batch: str) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for row in table(cloud).values():
        if isinstance(row, Honoured) and row.batch == batch:
            for path, value in ({row.at: row.value} | dict(row.also)).items():
                assert changes.setdefault(path, value) == value, f"{path} has two values in {batch}"
    return changes


@functools.cache
def differences(cloud: str, batch: str) -> tuple[str, ...]:
    given = GIVEN.get(batch, {}).get(cloud, {})
    was, now = _composed(cloud, given), _composed(cloud, given, changes_of(cloud, batch))
    told = [
        f"output {key}: {was.outputs[key]} -> {now.outputs.get(key)}"
        for key in was.outputs
        if was.outputs[key] != now.outputs.get(key)
    ]
    return *difference(was, now, longest=_LONGEST), *told


def _composed(cloud: str, *changes: Mapping[str, Any]) -> Graph:
    spec = spec_of(cloud, *changes)
    return deploy_graph(lambda: compose(spec), {**aws.COMPUTED, **gcp.COMPUTED})
