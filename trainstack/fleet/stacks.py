"""Stacks of a fleet: clients, folders and stack files, checked against each other."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError, did_you_mean
from infra.places import PROGRAM, STATE_NAME
from infra.stackspec.document import read
from trainstack.fleet.fleet_file import Client, Fleet, FleetBackend

_MAIN = re.compile(rf"(\./)?{re.escape(PROGRAM)}/?")
_SALT = re.compile(rb"(?m)^encryptionsalt: .*\n?")
_FILE = re.compile(r"Pulumi\.(.+)\.yaml")


@dataclass(frozen=True)
class FleetStack:
    """A stack of a client."""

    client: Client
    folder: Path
    """Absolute folder of the client."""
    project: str
    """Name of the Pulumi project."""
    name: str
    """Name of the stack."""
    cloud: str
    region: str
    environment: str
    """Such as `dev` or `prod`; empty where the stack file sets none."""
    account: str
    """AWS account or Google Cloud project; empty where the stack file sets none."""
    backend: FleetBackend | None

    @property
    def id(self) -> str:
        """Its name in the fleet."""
        return f"{self.client.name}/{self.name}"

    @property
    def is_production(self) -> bool:
        """Return whether it follows the client's other stacks."""
        return self.environment.startswith("prod")

    def digest(self) -> str:
        """Digest of the files of the client's folder: other files, other results."""
        digest = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            parts = path.relative_to(self.folder).parts
            if parts[0] in (STATE_NAME, ".git") or path.is_symlink() or not path.is_file():
                continue
            # The engine writes the salt of the passphrase into a stack file.
            content = _SALT.sub(b"", path.read_bytes())
            digest.update(f"{'/'.join(parts)}\0{len(content)}\0".encode(errors="surrogateescape") + content)
        return digest.hexdigest()


@dataclass(frozen=True)
class FleetStacks:
    """The stacks of a fleet that can be used, and the problems of the other clients."""

    stacks: tuple[FleetStack, ...]
    problems: Mapping[str, tuple[Problem, ...]]
    """Problems by client: its folder or a stack file cannot be used. Other clients are not affected."""


def stacks_of(fleet: Fleet, base: Path, *, rehearse: bool) -> FleetStacks:
    """The stacks of a fleet; `base` is the folder of the fleet file.

    Raises UserError for contradictions between clients: no command may guess which one is meant.
    """
    found: list[FleetStack] = []
    broken: dict[str, tuple[Problem, ...]] = {}
    for index, client in enumerate(fleet.clients):
        try:
            found += _stacks_of_client(client, f"clients[{index}]", fleet, base)
        except UserError as error:
            broken[client.name] = error.problems
    if problems := [*_same_names(fleet), *_same_folders(fleet, base), *_same_stacks(found, rehearse)]:
        raise UserError(problems)
    return FleetStacks(tuple(found), broken)


def _stacks_of_client(client: Client, path: str, fleet: Fleet, base: Path) -> Iterator[FleetStack]:
    folder = (base / (client.folder or client.name)).absolute()
    if not (folder / "Pulumi.yaml").is_file():
        rule = "has no Pulumi.yaml" if folder.is_dir() else "no such folder"
        fix = "Correct the folder, or make the client: `trainstack new`."
        raise UserError([Problem(f"{path}.folder", str(folder), rule, fix, code="client-folder-missing")])
    project = _mapping(read(folder / "Pulumi.yaml", f"{client.name}/Pulumi.yaml"))
    if not _MAIN.fullmatch(str(project.get("main", ""))):
        rule = f"is not a folder of trainstack: main is not {PROGRAM}"
        fix = "Make it with `trainstack new`, or leave the client out."
        raise UserError([Problem(f"{path}.folder", str(folder), rule, fix, code="client-folder-foreign")])
    files = (_FILE.fullmatch(one.name) for one in folder.iterdir())
    known = sorted(one[1] for one in files if one)
    names = client.stacks if client.stacks is not None else known
    problems = []
    for name in names:
        if name not in known:
            rule = f"has no file Pulumi.{name}.yaml in {folder}"
            fix = did_you_mean(name, known, f"Stack files: {', '.join(known) or 'none'}.")
            problems.append(Problem(f"{path}.stacks", name, rule, fix, code="stack-file-missing"))
    if not names:
        rule, fix = f"{folder} has no stack file", "Add a file Pulumi.<stack>.yaml, or remove the client."
        problems.append(Problem(f"{path}.folder", None, rule, fix, code="client-without-stacks"))
    if problems:
        raise UserError(problems)
    for name in dict.fromkeys(names):
        yield _stack(client, folder, str(project.get("name", "")), name, client.backend or fleet.backend)


def _stack(client: Client, folder: Path, project: str, name: str, backend: FleetBackend | None) -> FleetStack:
    """The stack with the values that select it. Values are read as written: rules are for its commands."""
    config = _mapping(
        _mapping(read(folder / f"Pulumi.{name}.yaml", f"{client.name}/Pulumi.{name}.yaml")).get("config")
    )
    layer = config.get("trainstack:client")
    path = folder / "clients" / f"{layer}.yaml"
    below = _mapping(read(path, f"{client.name}/clients/{layer}.yaml")) if layer and path.is_file() else {}
    specs = (_mapping(config.get("trainstack:spec")), below)
    places = [_mapping(one.get("on")) for one in specs]
    account = next((one[key] for one in places for key in ("account_id", "project") if one.get(key)), "")
    environment = next((one["environment"] for one in specs if one.get("environment")), "")
    return FleetStack(
        client, folder, project, name, str(config.get("trainstack:cloud", "")),
        str(config.get("trainstack:region", "")), str(environment), str(account), backend,
    )  # fmt: skip


def _mapping(content: Any) -> Mapping[str, Any]:
    return content if isinstance(content, Mapping) else {}


def _same_names(fleet: Fleet) -> Iterator[Problem]:
    for name, indexes in _repeated(
        (client.name.lower(), index) for index, client in enumerate(fleet.clients)
    ):
        rule = f"is the name of clients {' and '.join(f'clients[{one}]' for one in indexes)}"
        fix = "Give each client a name of its own; upper and lower case count as one."
        yield Problem(f"clients[{indexes[1]}].name", name, rule, fix, code="client-name-repeated")


def _same_folders(fleet: Fleet, base: Path) -> Iterator[Problem]:
    folders = (
        ((base / (client.folder or client.name)).resolve(), index)
        for index, client in enumerate(fleet.clients)
    )
    for folder, indexes in _repeated(folders):
        fix = "Name the folder once, with all its stacks."
        rule = f"is the folder of {' and '.join(fleet.clients[one].name for one in indexes)}"
        yield Problem(f"clients[{indexes[1]}].folder", str(folder), rule, fix, code="client-folder-repeated")


def _same_stacks(stacks: Iterable[FleetStack], rehearse: bool) -> Iterator[Problem]:
    known = list(stacks)
    states = ((_state(one), one.id) for one in known if one.backend and not rehearse)
    for (url, project, name), ids in _repeated(states):
        rule = f"is the stack {project}/{name} of {url} for {' and '.join(ids)}: they would share one state"
        fix = "Give them stacks of different names, projects of different names, or backends of their own."
        yield Problem(ids[1], None, rule, fix, code="pulumi-stack-shared")
    places = (((one.cloud, one.account, one.region, one.name), one.id) for one in known if one.account)
    for (_, account, region, name), ids in _repeated(places):
        if rehearse:
            continue
        rule = f"is called {name} as {ids[0]} is: both name their resources so in {account}, {region}"
        fix = "Rename one stack (as `trainstack new` does: CLIENT-dev), or correct its account."
        yield Problem(ids[1], None, rule, fix, code="account-and-stack-repeated")


def _state(stack: FleetStack) -> tuple[str, str, str]:
    assert stack.backend
    return (
        stack.backend.url.rstrip("/"),
        f"{stack.backend.organization}/{stack.project}".lstrip("/"),
        stack.name,
    )


def _repeated(pairs: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, list[Any]]]:
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return ((key, values) for key, values in groups.items() if len(values) > 1)
