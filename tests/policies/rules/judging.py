"""Rules asked about resources that a test writes down, where a recorded example would say too little."""

from typing import Any

from policies.evaluate import RuleOutcome, evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.stack import Stack


def made(kind: str, name: str = "it", /, **props: Any) -> Resource:
    """A resource whose id is its name, in us-east-1 unless it says another `region`."""
    tags = props.pop("tags", {})
    region = props.get("region", "us-east-1")
    return Resource(kind, f"urn:{name}", name, id=name, region=region, account="1", props=props, tags=tags)


def ask(rule: str, *resources: Resource, settings: RuleSettings | None = None) -> list[RuleOutcome]:
    """What a rule says about each."""
    return evaluate(Stack(resources, settings), [CATALOG.rules[rule]])


def results(rule: str, *resources: Resource) -> list[str]:
    """The results alone."""
    return [one.result for one in ask(rule, *resources)]


def judged(rule: str, *resources: Resource, **settings: Any) -> dict[str, str]:
    """By resource: the result, with the path of what is broken; of several the last."""
    outcomes = ask(rule, *resources, settings=RuleSettings(**settings))
    return {one.resource.name if one.resource else "": f"{one.result} {one.path}".strip() for one in outcomes}
