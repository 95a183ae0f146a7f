"""Names that the provider makes of ours are no longer than AWS takes: it refuses them, and cuts none."""

import json

import pulumi

from infra import stackspec
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from rehearsal.aws.table import TABLE
from stacks import compose
from tests.components.aws.computed import COMPUTED
from tests.components.graph import Graph, deploy_graph

ADDED = len("-1234567")
# As long as the spec lets them be.
STACK = "research-production-eu-central-1"
POOLS = {"a100": "training-on-eight-a100-of-40-gbx", "l4": "notebooks-and-small-evaluationsy"}
TEAM = {"Applied ML": "Applied Machine Learning for Search and Recommendation of EU"}


def longest() -> Graph:
    text = json.dumps(read(CONFIG / "Pulumi.dev-aws.yaml", "f")["config"])
    for short, long in {**POOLS, **TEAM}.items():
        text = text.replace(f'"{short}"', f'"{long}"')
    values = {name.removeprefix("trainstack:"): value for name, value in json.loads(text).items()}
    spec = stackspec.load(STACK, values, "f").spec

    def program() -> dict[str, pulumi.Output[object]]:
        compose(spec)
        return {}

    return deploy_graph(program, COMPUTED)


def test_automatic_names_fit_whatever_stack_pools_and_teams_are_called() -> None:
    made = [one for one in longest().cloud.asked if one.type in TABLE.rows]
    named = [(one, row) for one in made if (row := TABLE.rows[one.type]).name not in one.properties]
    too_long = {
        f"{one.type} {one.name}": (len(one.name) + ADDED, row.name_length)
        for one, row in named
        if row.name and len(one.name) + ADDED > row.name_length
    }
    assert too_long == {}
    assert len({one.name for one in made if one.type == "aws:iam/role:Role"}) == sum(
        one.type == "aws:iam/role:Role" for one in made
    )
