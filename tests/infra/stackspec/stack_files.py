"""Stack files as values, and the problems of loading them."""

from typing import Any

import pytest

from infra import stackspec
from infra.errors import Problem, UserError

Values = dict[str, Any]
# What a small stack on Google Cloud has as pools.
TRAINING = {
    "name": "h100",
    "machine": "a3-megagpu-8g",
    "purpose": "training",
    "purchase": {"kind": "on_demand"},
    "zones": ["us-central1-a"],
    "rdma": True,
    "max_nodes": 4,
}
INTERACTIVE = {
    "name": "a100",
    "machine": "a2-highgpu-1g",
    "purpose": "interactive",
    "purchase": {"kind": "spot"},
    "zones": ["us-central1-a", "us-central1-b"],
    "rdma": False,
    "max_nodes": 4,
}
DATA = {
    "name": "cpu",
    "machine": "n2-standard-16",
    "purpose": "data",
    "purchase": {"kind": "on_demand"},
    "zones": ["us-central1-a"],
    "rdma": False,
    "max_nodes": 2,
}


def problems(values: Values) -> list[Problem]:
    with pytest.raises(UserError) as caught:
        stackspec.load("dev", values, "Pulumi.dev.yaml")
    return list(caught.value.problems)


def paths(values: Values) -> set[str]:
    return {problem.path for problem in problems(values)}
