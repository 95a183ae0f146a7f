"""Stacks of a client, read from its folder, by the place that they are deployed to."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from infra import stackspec
from infra.errors import Problem, UserError, collected, raise_all
from infra.places import PROGRAM
from infra.stackspec import StackSpec
from infra.stackspec.document import read
from infra.stackspec.load import stacks
from infra.stackspec.several.derived import of_stack


@dataclass(frozen=True)
class DeployedStacks:
    """Stacks of a place with one deployer: a stack, or a large one with the stacks of its clusters."""

    name: str
    """Name of the stack, or of the large one."""
    specs: tuple[StackSpec, ...]
    elsewhere: tuple[StackSpec, ...] = ()
    """Stacks of clusters in other places, whose state is with that of the large stack, and that itself."""

    @property
    def states(self) -> tuple[str, ...]:
        """Stacks whose state the deployer reads and writes here."""
        return tuple(spec.name for spec in (*self.specs, *self.guests))

    @property
    def manager(self) -> StackSpec | None:
        """The large stack of a guest; None where its file is in no place, and for all others."""
        return next((one for one in self.elsewhere if one.name == self.name), None)

    @property
    def host(self) -> StackSpec | None:
        """The large stack of guests on its own cloud, whose deployer logs in as theirs; None for others."""
        manager = self.manager
        return manager if manager and manager.cloud == self.specs[0].cloud else None

    @property
    def guests(self) -> tuple[StackSpec, ...]:
        """Stacks of clusters in other places, for the place of the large stack; none for others."""
        return () if self.is_guest else self.elsewhere

    @property
    def clusters(self) -> tuple[StackSpec, ...]:
        """Stacks of the clusters of a large stack, wherever they are."""
        return tuple(one for one in (*self.specs, *self.elsewhere) if one.name != self.name)

    @property
    def is_guest(self) -> bool:
        """Return whether the stack itself is in another place, and here are clusters of it alone."""
        return all(spec.name != self.name for spec in self.specs)


@dataclass(frozen=True)
class BootstrapPlace:
    """Stacks of one account or project, with their state in one region."""

    cloud: str
    name: str
    """Account id or project id."""
    region: str
    """Region of the state."""
    specs: tuple[StackSpec, ...]
    others: Mapping[str, Path] = field(default_factory=dict)
    """Stacks of other clients in the same account or project, by name, with their folders."""
    unread: Sequence[Path] = ()
    """Files of other clients that are not valid, so that their places are unknown."""

    heads: Mapping[str, str] = field(default_factory=dict)
    """The large stack of each stack of a cluster, by name."""
    far: tuple[StackSpec, ...] = ()
    """Stacks of the client in other places."""

    @property
    def deployed(self) -> tuple[DeployedStacks, ...]:
        """The stacks by their deployer. The names of a large stack's clusters begin with its own."""
        found: dict[str, list[StackSpec]] = {}
        for spec in self.specs:
            found.setdefault(self.heads.get(spec.name, spec.name), []).append(spec)
        away: dict[str, list[StackSpec]] = {}
        for spec in self.far:
            away.setdefault(self.heads.get(spec.name, spec.name), []).append(spec)
        return tuple(
            DeployedStacks(name, tuple(specs), tuple(away.get(name, ()))) for name, specs in found.items()
        )

    @property
    def has_state(self) -> bool:
        """Return whether the state of a stack is in this place."""
        return any(not one.is_guest for one in self.deployed)

    @property
    def emails(self) -> tuple[str, ...]:
        """Contacts of the budgets, each once."""
        return tuple(dict.fromkeys(one for spec in self.specs for one in spec.budget.alert_emails))

    @property
    def monthly_usd(self) -> float:
        """US dollars per month, of all stacks; the budget of a large one is that of its clusters."""
        return sum(
            spec.budget.monthly_usd
            for one in self.deployed
            for spec in one.specs
            if one.is_guest or spec.name == one.name
        )


def place(folder: Path, chosen: Sequence[str]) -> BootstrapPlace:
    """The place of the chosen stacks, of all by default, with every stack of the folder in it.

    A file without a stack would delete the deployer of that stack where it is applied. Raises UserError for
    invalid stacks, and for several places or regions.
    """
    every = stacks(folder)
    names = list(dict.fromkeys([*every, *chosen]))
    if not names:
        fix = "Name the folder of a client with a file Pulumi.<stack>.yaml."
        rule = "has no stacks" if folder.is_dir() else "is no folder"
        raise UserError([Problem("CLIENT", str(folder), rule, fix, code="bootstrap-no-stacks")])
    found, problems = list[tuple[StackSpec, tuple[str, str]]](), list[Problem]()
    heads = dict[str, str]()
    for name in names:
        with collected(problems):
            loaded = stackspec.load_file(name, folder)
            spec = of_stack(loaded.spec)
            if loaded.member:
                heads[name] = loaded.member.of.name
            if (where := _where(spec)) or not chosen or name in chosen:
                found.append((spec, where or _unsupported(spec)))
    raise_all(problems)
    wanted = {where for spec, where in found if not chosen or spec.name in chosen}
    if len(wanted) > 1:
        rule = f"the stacks are of several places: {'; '.join(' '.join(where) for where in sorted(wanted))}"
        fix = f"Choose one with -s, one of its stacks: {', '.join(names)}."
        raise UserError([Problem("--stack", None, rule, fix, code="bootstrap-several-places")])
    ((cloud, name),) = wanted
    specs = tuple(spec for spec, where in found if where == (cloud, name))
    raise_all(_several_regions(name, {one.name: _home(one, heads, specs).region for one in specs}))
    unread = list[Path]()
    others = dict(_others(folder, (cloud, name), unread))
    region = _home(specs[0], heads, specs).region
    far = tuple(spec for spec, where in found if where != (cloud, name))
    return BootstrapPlace(cloud, name, region, specs, others, unread, heads, far)


def _home(spec: StackSpec, heads: Mapping[str, str], specs: Sequence[StackSpec]) -> StackSpec:
    """The stack whose region has the state: the large stack of a cluster, or its first cluster here."""
    head = heads.get(spec.name, spec.name)
    return next(
        (one for one in specs if one.name == head),
        next(one for one in specs if heads.get(one.name, one.name) == head),
    )


def _others(folder: Path, where: tuple[str, str], unread: list[Path]) -> Iterator[tuple[str, Path]]:
    """Stacks of a place in other clients' folders beside this one; `unread` gets files that are not valid."""
    for other in siblings(folder):
        # The folder may be a second copy of the client's.
        with _named(other / "Pulumi.yaml", unread):
            for name in stacks(other) if client_name(other) != client_name(folder) else ():
                with _named(other / f"Pulumi.{name}.yaml", unread):
                    if _where(stackspec.load_file(name, other).spec) == where:
                        yield name, other


@contextmanager
def _named(file: Path, unread: list[Path]) -> Iterator[None]:
    try:
        yield
    except UserError:
        unread.append(file)


def siblings(folder: Path) -> Iterator[Path]:
    """Folders of other clients in the same parent folder."""
    for project in sorted(folder.parent.glob("*/Pulumi.yaml")):
        if project.parent != folder:
            with suppress(OSError):
                if PROGRAM in project.read_text(encoding="utf-8", errors="replace"):
                    yield project.parent


def _where(spec: StackSpec) -> tuple[str, str] | None:
    """The cloud, and the account or project; None for a stack whose deployer has no known rights."""
    if _of_operator(spec):
        return None
    name = getattr(spec.on, "account_id", None) or getattr(spec.on, "project", None)
    return (spec.cloud, str(name)) if name else None


def _of_operator(spec: StackSpec) -> bool:
    return getattr(spec.on, "slinky", None) is not None


def _unsupported(spec: StackSpec) -> NoReturn:
    if _of_operator(spec):
        rule = f"the rights that deploy {spec.name}, with Slurm in its cluster, have no list yet"
        fix = "Choose other stacks with -s, and deploy this one by a role of your own."
        raise UserError([Problem("on.slinky", None, rule, fix, code="bootstrap-not-supported")])
    fix = "Use aws or gcp."
    rule = "has no account of its own to set up"
    raise UserError([Problem("trainstack:cloud", spec.cloud, rule, fix, code="bootstrap-not-supported")])


def _several_regions(place: str, regions: Mapping[str, str]) -> Iterator[Problem]:
    """Names of the bucket, readers, boundaries and budget have no region: a second setup would collide.

    `regions` by stack: that of the large stack for its clusters, which have one state with it.
    """
    if len({*regions.values()}) > 1:
        rule = f"{place} has stacks of several regions, but its state, readers and boundaries are of one"
        fix = (
            "Give the stacks of each region an account or a project of their own, or make them clusters of "
            "one large stack (docs/how-to/clusters/several-clusters.md)."
        )
        yield Problem("trainstack:region", dict(regions), rule, fix, code="bootstrap-several-regions")


def large_stack(stack: str, folder: Path) -> str:
    """The large stack of a cluster's stack, by its file; else the stack itself."""
    file = folder / f"Pulumi.{stack}.yaml"
    content = read(file, file.name) if file.is_file() else None
    config = content.get("config") if isinstance(content, Mapping) else None
    return str((config.get("trainstack:of") if isinstance(config, Mapping) else None) or stack)


def client_name(folder: Path) -> str:
    """The client of a folder: its project's name, else the folder's."""
    file = folder / "Pulumi.yaml"
    content = read(file, file.name) if file.is_file() else None
    named = content.get("name") if isinstance(content, Mapping) else None
    return str(named or folder.name)
