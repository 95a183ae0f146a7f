"""Verdicts of the policies on a stack composed against mocks: all values are known, no engine runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from policies.configuration import read
from policies.evaluate import RuleOutcome, evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.sources.convert import Converter
from policies.sources.files import FileProblems
from policies.stack import Stack
from tests.components.graph import Graph, Registered
from tests.components.recorder import REGION

CONFIGURATION = Path(__file__).resolve().parents[3] / "stacks" / "audit.yaml"


def resources(graph: Graph, region: str) -> list[Resource]:
    """The resources of a graph, as an export of the stack in a region has them."""
    converter = Converter(FileProblems("a composed stack"), "state")
    for one in graph.registered:
        # Mocks compute ARNs of one region for all stacks.
        text = json.dumps(row(one), default=str).replace(f":{REGION}:", f":{region}:")
        converter.add(one.urn, json.loads(text))
    return converter.resources()


def row(made: Registered) -> dict[str, Any]:
    """A resource as an export has it."""
    request = made.request
    return {
        "urn": made.urn,
        "type": request.type,
        "custom": request.custom,
        "id": made.id,
        "parent": request.parent,
        "provider": request.provider,
        "protect": request.protect,
        "dependencies": list(request.dependencies),
        "propertyDependencies": {key: list(one.urns) for key, one in request.propertyDependencies.items()},
        "inputs": json_format.MessageToDict(request.object),
        "outputs": made.state,
    }


def settings(environment: str) -> RuleSettings:
    """Settings by which a shipped stack is judged."""
    return read(CONFIGURATION, CATALOG.rules, environment=environment).settings


def verdicts(found: Sequence[Resource], environment: str) -> list[RuleOutcome]:
    """Outcomes of all rules."""
    return evaluate(Stack(found, settings(environment)), CATALOG.rules.values())


def reported(outcomes: Sequence[RuleOutcome], result: str) -> list[str]:
    """The outcomes with one result, as text."""
    return [
        f"{one.rule.id} {one.resource.name if one.resource else '-'} {one.path}: {one.message}"
        for one in outcomes
        if one.result == result
    ]
