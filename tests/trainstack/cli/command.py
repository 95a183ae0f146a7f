"""`trainstack` within this process."""

import json
from functools import cache
from typing import Any

import jsonschema
from typer.testing import CliRunner

from infra.engine.golang import ROOT
from infra.errors import UserError
from trainstack.cli.app import app

SCHEMAS = ROOT / "docs" / "reference" / "schemas"


@cache
def schemas() -> dict[str, Any]:
    """The published schemas by the id in their documents."""
    found = [json.loads(path.read_text()) for path in sorted(SCHEMAS.rglob("*.schema.json"))]
    return {schema["properties"]["schema"]["const"]: schema for schema in found}


def run(*words: str) -> tuple[int, str]:
    """(exit code, output); user errors are raised."""
    done = CliRunner().invoke(app, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def run_json(*words: str) -> tuple[int, Any]:
    """(exit code, document), which its published schema allows; user errors are raised."""
    done = CliRunner().invoke(app, [*words, "--format", "json"])
    if isinstance(done.exception, UserError):
        raise done.exception
    return done.exit_code, checked(done.stdout)


def checked(output: str) -> Any:
    """The document in an output, which its published schema allows."""
    document = json.loads(output)
    jsonschema.Draft202012Validator(schemas()[document["schema"]]).validate(document)
    return document
