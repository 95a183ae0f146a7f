"""Whole stacks composed against mocks, from the stack files of supported pairs."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infra import stackspec
from infra.stackspec.document import read
from stacks import compose
from tests.components.aws import computed as aws
from tests.components.gcp import computed as gcp
from tests.components.graph import Graph, deploy_graph

CONFIG = Path(__file__).resolve().parents[3] / "stacks" / "config"
Pair = tuple[str, str]
Change = Callable[[Any], object]
# The stack file that stands for each supported pair of profile and cloud.
FILES: dict[Pair, str] = {
    ("small", "aws"): "Pulumi.small-aws.yaml",
    ("small", "gcp"): "Pulumi.small-gcp.yaml",
    ("small-cluster", "aws"): "Pulumi.small-eks-aws.yaml",
    ("small-cluster", "gcp"): "Pulumi.small-gke-gcp.yaml",
    ("medium", "aws"): "Pulumi.dev-aws.yaml",
    ("medium", "gcp"): "Pulumi.dev-gcp.yaml",
    ("large-slurm", "aws"): "Pulumi.large-slurm-aws.yaml",
    ("large-slurm", "gcp"): "Pulumi.large-slurm-gcp.yaml",
}
STACK = "dev"


def stack_spec(pair: Pair, change: Change | None = None) -> stackspec.StackSpec:
    """The spec of the pair's stack file after `change` to its key `spec`."""
    plain = json.loads(json.dumps(read(CONFIG / FILES[pair], FILES[pair])))
    settings = {key.partition(":")[2]: value for key, value in plain["config"].items()}
    if change:
        change(settings["spec"])
    return stackspec.load(STACK, settings, FILES[pair]).spec


def composed(pair: Pair, change: Change | None = None) -> Graph:
    """Everything that the pair's stack requests from the clouds; tests share the graph without a change."""
    return deployed(stack_spec(pair, change)) if change else _unchanged(pair)


def deployed(spec: stackspec.StackSpec) -> Graph:
    """Everything that a stack requests from the clouds."""
    return deploy_graph(lambda: compose(spec), {**aws.COMPUTED, **gcp.COMPUTED})


@functools.cache
def _unchanged(pair: Pair) -> Graph:
    return deployed(stack_spec(pair))
