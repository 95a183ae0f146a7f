"""Folders of an agency: clients as `trainstack new` makes them, and a fleet file."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from trainstack.stamp import client
from trainstack.stamp.choices import ClientChoices
from trainstack.stamp.environment import link

ACCOUNT = "123456789012"
NAMED = "client-of-tests"


_NAME, _ACCOUNT = "placeholder", "909090909090"


@cache
def _rendered(cloud: str) -> Mapping[str, str]:
    account = _ACCOUNT if cloud == "aws" else ""
    return client.render(ClientChoices(_NAME, cloud, "small", account=account)).texts


def stack_of(name: str, environment: str = "dev") -> str:
    """The name of a client's stack."""
    return f"{name}-{environment}"


def add_client(
    base: Path, name: str, *, account: str = ACCOUNT, cloud: str = "aws", environment: str = "dev"
) -> Path:
    """A client's folder with one stack; called again, another stack."""
    folder = base / name
    wanted = ("Pulumi.yaml", f"Pulumi.{stack_of(name, environment)}.yaml")
    for path, text in _rendered(cloud).items():
        target = folder / path.replace(_NAME, name)
        if target.name in wanted or not target.name.startswith("Pulumi."):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace(_NAME, name).replace(_ACCOUNT, account))
    link(folder)
    return folder


def write_fleet(base: Path, clients: Sequence[Mapping[str, Any]], **more: Any) -> Path:
    """A fleet file; JSON is YAML."""
    path = base / "fleet.yaml"
    path.write_text(json.dumps({"format": 1, "clients": clients, **more}, indent=1))
    return path
