"""Values that AWS lists, written by `tools/aws_values.py` from cfn-lint's schemas, botocore and moto.

`facts.json` has the facts of single values (`core.rules.facts`) by type; `lists.json` the lists that grow
(`core.rules.open_lists`): machine types and versions of services, runtimes, managed policies. `uses.toml`
names the properties that take a value of a list.
"""

import functools
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.rules.open_lists import Machines

FACTS, LISTS = (Path(__file__).with_name(name) for name in ("facts.json", "lists.json"))


@functools.cache
def facts() -> Mapping[str, Mapping[str, Any]]:
    """The facts of each type, such as `sqs/queue:Queue`."""
    found: Mapping[str, Mapping[str, Any]] = _read(FACTS)["types"]
    return found


@functools.cache
def uses() -> list[Mapping[str, Any]]:
    """The rows of `uses.toml`."""
    found: list[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("uses.toml").read_text())["use"]
    return found


@functools.cache
def machines(name: str) -> Machines:
    """The machine types of a service, such as `ec2` or `rds postgres`."""
    row = _lists()["machines"][name]
    families = {family: tuple(sizes.split()) for family, sizes in row["families"].items()}
    return Machines(families, row.get("prefix", ""), row.get("suffix", ""))


def has_machines(name: str) -> bool:
    """Return whether there is a list of machine types of a name."""
    return name in _lists()["machines"]


def versions(name: str) -> list[str]:
    """The versions of an engine, such as `rds postgres`; empty for an unknown one."""
    found: list[str] = _lists()["versions"].get(name, [])
    return found


def runtimes() -> Mapping[str, Mapping[str, str]]:
    """Runtimes of Lambda, each with the days from which functions cannot be created or updated with it."""
    found: Mapping[str, Mapping[str, str]] = _lists()["runtimes"]
    return found


def managed_policies() -> Mapping[str, str]:
    """The names of AWS's managed policies, with their paths: empty, or such as `service-role/`."""
    found: Mapping[str, str] = _lists()["policies"]
    return found


def source(file: Path = LISTS) -> str:
    """The packages that a file is made from, and the date of the schemas."""
    head = _read(file)
    return f"{head['source']} ({head['date']})"


@functools.cache
def _read(file: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _lists() -> Mapping[str, Any]:
    return _read(LISTS)
