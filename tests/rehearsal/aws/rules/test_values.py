"""Facts and lists of AWS: each refuses a mutation at its path, and accepts what it has."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws import rules, values
from rehearsal.aws.rules import BOOK
from rehearsal.core.model import UNKNOWN, Properties, Record
from rehearsal.core.rules.facts import of_values
from rehearsal.core.schema import Property, Schemas
from tests.rehearsal.driver import CACHE
from tests.rehearsal.gcp.rules.test_provider import nested, wrong

FACTS = ("words_any_case", "ranges", "length")


class NewResource:
    """The view of a rule when a resource is created in an empty account."""

    def current(self, token: str) -> Record | None:
        return None


def problems(fact: str, path: str, wanted: Any, value: Any) -> list[str]:
    return [violation.path for violation in of_values({fact: {path: wanted}}, nested(path, value))]


def around(rule: str, inputs: Properties) -> list[str]:
    check = BOOK.rules[rule].around
    assert check is not None
    view: Any = NewResource()
    return [violation.path for violation in check(inputs, view)]


def test_every_fact_refuses_a_mutation_and_accepts_its_values() -> None:
    assert len(values.facts()) > 300
    for token, facts in values.facts().items():
        assert f"AWS-VALUES-{token.partition(':')[0]}" in BOOK.rules
        rows = [(fact, *row) for fact in FACTS for row in facts.get(fact, {}).items()]
        for fact, path, wanted in rows:
            words = fact == "words_any_case"
            for value in wrong("words" if words else fact, wanted):
                unset = value in (-1, 0) and [0, 0] in wanted
                assert unset or problems(fact, path, wanted, value), (token, path)
            assert not words or problems(fact, path, wanted, wanted[0].swapcase()) == [], (token, path)
            assert problems(fact, path, wanted, UNKNOWN) == []


def engine(use: Any) -> dict[str, str]:
    return (
        {
            use["by"]: {"rds": "postgres", "rds cluster": "aurora-postgresql", "elasticache": "redis"}[
                use["list"]
            ]
        }
        if "by" in use
        else {}
    )


# Verdicts by the list of the property: known, newer, wrong.
SAMPLES = {
    "ec2": ("m5.large", "g8.xlarge", "g9.xlarge"),
    "emr": ("m5.xlarge", "m5.huge", "m5.huge"),
    "elasticache": ("cache.t4g.micro", "cache.t5.micro", "cache.t9.micro"),
    "opensearch": ("r6g.large.search", "r6g.large", "r6g.large"),
    "elasticsearch": ("r5.large.elasticsearch", "r5.large.search", "r5.large.search"),
    "redshift": ("ra3.xlplus", "dc9.large", "dc9.large"),
    "dax": ("dax.r5.large", "r5.large", "r5.large"),
    "docdb": ("db.serverless", "r5.large", "db.r5.tiny"),
    "neptune": ("db.serverless", "r5.large", "db.r5.tiny"),
    "mq": ("mq.m5.large", "m5.large", "m5.large"),
    "sagemaker hosting": ("ml.g5.xlarge", "g5.xlarge", "g5.xlarge"),
    "sagemaker notebook": ("ml.t3.medium", "t3.medium", "t3.medium"),
    "rds machines": ("db.t4g.micro", "db.t5.micro", "db.t9.micro"),
    "rds versions": ("16", "18.9", "9.6.1"),
    "rds cluster versions": ("16", "19", "9.6.1"),
    "elasticache versions": ("7.1", "7.2", "9.9"),
}


@pytest.mark.parametrize("use", values.uses(), ids=lambda use: use["id"])
def test_every_use_of_a_list_accepts_warns_and_refuses(use: Any) -> None:
    own = SAMPLES.get(f"{use['list']} {use['kind']}")
    known, newer, refused = own or SAMPLES[use["list"]]
    for path in use["paths"]:
        inputs = {**engine(use), **nested(path, known)}
        assert around(f"AWS-LIST-{use['id']}", inputs) == around(f"AWS-NEWER-{use['id']}", inputs) == []
        assert around(f"AWS-LIST-{use['id']}", {**engine(use), **nested(path, refused)}) != []
        if newer != refused and not newer.startswith("r5"):
            inputs = {**engine(use), **nested(path, newer)}
            assert around(f"AWS-LIST-{use['id']}", inputs) == []
            assert around(f"AWS-NEWER-{use['id']}", inputs) != []
        assert around(f"AWS-LIST-{use['id']}", {**engine(use), **nested(path, UNKNOWN)}) == []


def _exists(schemas: Schemas, token: str, path: str) -> bool:
    schema = schemas.resource(f"aws:{token}")
    assert schema is not None, token
    fields: Mapping[str, Property] = schema.inputs
    for step in path.split("."):
        given = fields.get(step.removesuffix("[]"))
        if given is None:
            return False
        form = given.type
        form = form.get("list", form) if isinstance(form, dict) else form
        fields = schema.objects.get(form["object"], {}) if isinstance(form, dict) and "object" in form else {}
    return True


def test_every_property_of_a_list_is_one_of_the_sdk_for_each_of_its_types() -> None:
    schemas = Schemas("aws", CACHE)
    named = [(token, path) for row in values.uses() for token in row["types"] for path in row["paths"]]
    absent = [(token, path) for token, path in named if not _exists(schemas, token, path)]
    schemas.close()
    assert absent == []


def test_every_property_of_a_limit_is_one_of_the_sdk_for_a_type_of_its_row() -> None:
    schemas, folder = Schemas("aws", CACHE), Path(rules.__file__).parent / "limits"
    rows = [row for file in folder.glob("*.toml") for row in tomllib.loads(file.read_text())["limit"]]
    absent = [
        (row["id"], path)
        for row in rows
        for path in row["paths"]
        if not any(_exists(schemas, token, path) for token in row["types"])
    ]
    schemas.close()
    assert absent == []
