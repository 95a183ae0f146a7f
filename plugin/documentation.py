"""The reference page of the components, made from the schema."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from plugin.exposed import LEFT_OUT

FILE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "components.md"
_TITLES = {
    "Aws": "Components on AWS",
    "Gcp": "Components on Google Cloud",
    "": "Components of every Kubernetes cluster",
}
_HEAD = """# Components for other languages

Made from `plugin/schema.json` by `python -m plugin.renewal`. How to use them:
[other-languages.md](../how-to/other-languages.md).

`string*`: an output of another resource, or a secret, is accepted too. A value without `*` must be known when
the program runs. A property in **bold** is required. Known machine types with their GPUs:
[AWS](../../infra/catalog/aws/tables/instance_types.toml),
[Google Cloud](../../infra/catalog/gcp/tables/machine_types.toml); networks and measured figures:
`trainstack smoke references`.
"""


def page(schema: Mapping[str, Any]) -> str:
    """The page of a schema, as Markdown."""
    return "\n".join(_lines(schema)).rstrip() + "\n"


def _lines(schema: Mapping[str, Any]) -> Iterator[str]:
    yield _HEAD
    resources = {token.rpartition(":")[2]: one for token, one in schema["resources"].items()}
    for prefix, title in _TITLES.items():
        yield f"## {title}\n"
        for name, one in resources.items():
            if _cloud(name) == prefix:
                yield from _component(name, one)
    yield "## Types of arguments\n"
    for token, one in schema["types"].items():
        yield f"### {token.rpartition(':')[2]}\n"
        yield f"{one['description']}\n"
        yield from _table("property", one["properties"], one["required"])
    yield "## Components that are not in the package\n"
    yield "| components | reason |\n|---|---|"
    for reason, names in groupby(
        sorted(LEFT_OUT, key=lambda name: (LEFT_OUT[name], name)), key=LEFT_OUT.__getitem__
    ):
        yield f"| {', '.join(f'`{name}`' for name in names)} | {reason} |"


def _component(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{one['description']}\n"
    yield from _table("argument", one["inputProperties"], one["requiredInputs"])
    if one["properties"]:
        yield from _table("output", one["properties"], one["required"])


def _table(what: str, properties: Mapping[str, Any], required: list[str]) -> Iterator[str]:
    yield f"| {what} | type | description |\n|---|---|---|"
    for name, found in properties.items():
        shown = f"**`{name}`**" if name in required and what != "output" else f"`{name}`"
        text = " ".join(found.get("description", "").split()).replace("|", "\\|")
        yield f"| {shown} | {_type(found, output=what == 'output')} | {text} |"
    yield ""


def _type(found: Mapping[str, Any], *, output: bool) -> str:
    late = "" if output or found.get("plain") else "*"
    if "$ref" in found:
        name = found["$ref"].rpartition(":")[2].rpartition("/")[2]
        return f"any{late}" if name == "Any" else f"[{name}](#{name.lower()})"
    if found["type"] == "array":
        return f"list of {_type(found['items'], output=output)}{late}"
    if found["type"] == "object":
        return f"map of {_type(found['additionalProperties'], output=output)}{late}"
    return f"{found['type']}{late}"


def _cloud(name: str) -> str:
    return next((prefix for prefix in ("Aws", "Gcp") if name.startswith(prefix)), "")
