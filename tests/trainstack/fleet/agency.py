"""Folders of an agency: clients as `trainstack new` makes them, and a fleet file."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from trainstack.stamp import client, environment
from trainstack.stamp.choices import ClientChoices

ACCOUNT = "123456789012"
NAMED = "client-of-tests"


@cache
def _rendered(cloud: str) -> Mapping[str, str]:
    return client.render(ClientChoices(NAMED, cloud, "small")).texts


def stack_of(name: str, environment: str = "dev") -> str:
    """The name of a client's stack."""
    return f"{name}-{environment}"


def add_client(
    base: Path, name: str, *, account: str = ACCOUNT, cloud: str = "aws", environment_name: str = "dev"
) -> Path:
    """A client's folder with one stack; called again, another stack."""
    folder = base / name
    folder.mkdir(exist_ok=True)
    for file, text in _rendered(cloud).items():
        if file == f"Pulumi.{NAMED}-prod.yaml":
            continue
        own = text.replace(f"{NAMED}-dev", stack_of(name, environment_name)).replace(NAMED, name)
        own = own.replace(ACCOUNT, account).replace("environment: dev ", f"environment: {environment_name} ")
        target = file.replace(f"{NAMED}-dev", stack_of(name, environment_name)).replace(NAMED, name)
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (folder / target).write_text(own)
    environment.link(folder)
    return folder


def write_fleet(base: Path, clients: Sequence[Mapping[str, Any]], **more: Any) -> Path:
    """A fleet file; JSON is YAML."""
    path = base / "fleet.yaml"
    path.write_text(json.dumps({"format": 1, "clients": clients, **more}, indent=1))
    return path
