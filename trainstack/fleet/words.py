"""The words of the command of a stack, with the policy settings of its folder."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trainstack.fleet.stacks import FleetStack

PACK = ".trainstack/policies"
"""The policy pack that every command links into a client's folder."""


def of_command(command: str, stack: FleetStack, *, rehearse: bool, policies: bool = True) -> list[str]:
    """A command that prints a JSON document; the runner adds the stack."""
    words = [command, "--format", "json"]
    if command in ("preview", "up") and policies:
        words += ["--policy-pack", PACK]
        settings = f"policies/{stack.environment}.json"
        words += ["--policy-pack-config", settings] if (stack.folder / settings).is_file() else []
    if command == "audit":
        words += ["--allow-empty", *_audit(stack)]
    return [*words, "--rehearse"] if rehearse else words


def _audit(stack: FleetStack) -> Iterator[str]:
    """Files of the audit, as the settings of the policy pack name them."""
    for name, value in _settings(stack).items():
        if name in ("config", "environment", "waivers"):
            yield from (f"--{name}", str(value))


def _settings(stack: FleetStack) -> Mapping[str, Any]:
    try:
        found = json.loads((stack.folder / f"policies/{stack.environment}.json").read_text(encoding="utf-8"))
        return dict(found["audit"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # a preview reports what is wrong with the file
