"""The annotation `pulumi.com/waitFor`: conditions that replace the provider's own waiting.

Sources in pulumi/pulumi-kubernetes (94977969): provider/pkg/metadata/overrides.go (ReadyCondition),
provider/pkg/jsonpath/jsonpath.go (RFC 9535), provider/pkg/await/condition/jsonpath.go, custom.go, kubectl.go.
The provider takes a single `=` in a path, such as that of `!=`, for the one before the value.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from jsonpath import JSONPathEnvironment, JSONPathError

WAIT_FOR, SKIP_AWAIT = "pulumi.com/waitFor", "pulumi.com/skipAwait"
_BRACES = re.compile(r"\{\s*(.*?)\s*\}")
_EQUAL = "\N{REPLACEMENT CHARACTER}"
_PATHS = JSONPathEnvironment(strict=True)

Live = Mapping[str, Any]
# Message about an unmet condition of an object; empty once it holds.
Condition = Callable[[Live], str]


def skipped(inputs: Mapping[str, Any]) -> bool:
    """Return whether the program disabled waiting."""
    return _annotations(inputs).get(SKIP_AWAIT) == "true"


def wait_for(inputs: Mapping[str, Any]) -> str:
    """The waitFor annotation; empty without one."""
    return "" if skipped(inputs) else str(_annotations(inputs).get(WAIT_FOR) or "")


def built_in(inputs: Mapping[str, Any]) -> bool:
    """Return whether the provider's own waiting applies."""
    return not skipped(inputs) and not wait_for(inputs)


def conditions_of(annotation: str) -> list[Condition]:
    """The conditions of one annotation, all of which must hold.

    Raises ValueError with the provider's message for invalid ones.
    """
    try:
        given = json.loads(annotation)
    except ValueError:
        given = [annotation]
    texts = given if isinstance(given, list) and all(isinstance(one, str) for one in given) else [annotation]
    if not texts:
        raise ValueError("at least one condition must be specified")
    return [_condition(text) for text in texts]


def _annotations(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = inputs.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _condition(text: str) -> Condition:
    if text.startswith("jsonpath="):
        return _path(text.removeprefix("jsonpath="))
    if text.startswith("condition="):
        return _status(text.removeprefix("condition="))
    raise ValueError(f'expected a "jsonpath=" or "condition=" prefix, got {json.dumps(text)}')


def _path(text: str) -> Condition:
    path, *values = (part.replace(_EQUAL, "==") for part in text.replace("==", _EQUAL).split("="))
    if len(values) > 1:
        raise ValueError(f"format should be {{.path}}=value or {{.path}}, got {json.dumps(text)}")
    if values == [""]:
        raise ValueError(f"{path}= requires a value")
    if path.startswith("'") and path.endswith("'"):
        raise ValueError(f"{path} should omit shell quotes")
    braces = _BRACES.search(path)
    if braces is None:
        raise ValueError(f"{path} should be wrapped in brackets {{ ... }}")
    bare = braces.group(1)
    try:
        compiled = _PATHS.compile(bare if bare.startswith("$") else f"${bare}")
    except JSONPathError as error:
        raise ValueError(f"parsing {json.dumps(path)}: {error.args[0]}") from error
    wanted = values[0] if values else ""

    def missing(live: Live) -> str:
        if _behind(live, (live.get("status") or {}).get("observedGeneration")):
            return f"Waiting for {text}"
        first = compiled.match(live)
        if first is None:
            return f"{path} selected nothing"
        found = first.value
        if isinstance(found, dict | list):
            return f'"{path}" has a non-primitive value ({json.dumps(found)})' if wanted else ""
        return "" if wanted in ("", _shown(found)) else f'Waiting for {text} (found "{_shown(found)}")'

    return missing


def _status(text: str) -> Condition:
    kind, equal, wanted = text.partition("=")
    wanted = wanted if equal else "True"

    def missing(live: Live) -> str:
        status = live.get("status") or {}
        if "conditions" not in status:
            return "Has no .status.conditions"
        for row in status["conditions"]:
            if str(row.get("type")).lower() == kind.lower() and "status" in row:
                if _behind(live, row.get("observedGeneration", status.get("observedGeneration"))):
                    return "The controller has not seen the last change"
                same = str(row["status"]).lower() == wanted.lower()
                return "" if same else f"Resource has condition {kind}={row['status']} (want {wanted})"
        return f"Waiting for condition {kind}={wanted}"

    return missing


def _behind(live: Live, observed: Any) -> bool:
    generation = (live.get("metadata") or {}).get("generation")
    return generation is not None and observed is not None and observed < generation


def _shown(value: Any) -> str:
    """A value in Go's notation."""
    return "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
