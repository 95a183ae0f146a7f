"""Resource types of an installed SDK, and their names in the Terraform provider that it is built on."""

import importlib
import re
from collections.abc import Mapping
from typing import Any

from pulumi.runtime import rpc

from tools.provider_source import Source, spellings

# So much of the properties of two types must be the same.
_LIKENESS = 0.6


def tokens(package: str) -> list[str]:
    """Every resource type of the SDK, without the package."""
    importlib.import_module(f"pulumi_{package}")
    found = {
        token
        for modules in rpc._RESOURCE_MODULES.values()
        for module in modules
        for token in getattr(module, "mod_info", {}).get("classes", ())
        if token.startswith(f"{package}:")
    }
    return sorted(token.removeprefix(f"{package}:") for token in found)


def matched(package: str, sdk: Mapping[str, Any], sources: Mapping[str, Source]) -> dict[str, str]:
    """Token -> the provider's type whose name and properties are nearest."""
    prefix = "aws" if package == "aws" else "google"
    theirs = {
        name: {each for each, one in of.attributes.items() if one.given} for name, of in sources.items()
    }
    return {
        token: best
        for token, described in sdk.items()
        if (best := _nearest(token, set(described["inputs"]), theirs, prefix))
    }


def _nearest(token: str, mine: set[str], theirs: Mapping[str, set[str]], prefix: str) -> str | None:
    service, _, kind = token.partition(":")[0].partition("/")
    tail, whole = kind.lower(), re.sub(r"\W", "", service + kind).lower()
    scored = []
    for name, properties in theirs.items():
        plain = name.removeprefix(f"{prefix}_").replace("_", "")
        shared = _shared(mine, properties)
        likeness = shared / max(1, len(mine) + len(properties) - shared)
        if likeness < _LIKENESS:
            continue
        named = 2.0 if plain == whole else 1.5 if plain == tail else 1.0 if plain.endswith(tail) else 0.0
        # Of names that fit as well, the shortest has the least that the token does not say.
        scored.append((named + likeness, likeness, -len(name), name))
    if not scored:
        return None
    score, likeness, _, name = max(scored)
    return name if score >= 1.0 + _LIKENESS or (likeness > 0.95 and len(mine) > 4) else None


def _shared(mine: set[str], theirs: set[str]) -> int:
    return sum(any(spelling in mine for spelling in spellings(name)) for name in theirs)
