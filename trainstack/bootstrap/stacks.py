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
from infra.stackspec.slurm.layout import SlurmLayout


@dataclass(frozen=True)
class BootstrapPlace:
    """Stacks of one account or project, in one region."""

    cloud: str
    name: str
    """Account id or project id."""
    region: str
    specs: tuple[StackSpec, ...]
    others: Mapping[str, Path] = field(default_factory=dict)
    """Stacks of other clients in the same account or project, by name, with their folders."""
    unread: Sequence[Path] = ()
    """Files of other clients that are not valid, so that their places are unknown."""

    @property
    def emails(self) -> tuple[str, ...]:
        """Contacts of the budgets, each once."""
        return tuple(dict.fromkeys(one for spec in self.specs for one in spec.budget.alert_emails))

    @property
    def monthly_usd(self) -> float:
        """US dollars per month, of all stacks."""
        return sum(spec.budget.monthly_usd for spec in self.specs)


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
    for name in names:
        with collected(problems):
            spec = stackspec.load_file(name, folder).spec
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
    raise_all(_several_regions(name, specs))
    unread = list[Path]()
    others = dict(_others(folder, (cloud, name), unread))
    return BootstrapPlace(cloud, name, specs[0].region, specs, others, unread)


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
    """The cloud, and the account or project; None for a cloud without one, and for Slurm."""
    if isinstance(spec.layout, SlurmLayout):
        return None
    name = getattr(spec.on, "account_id", None) or getattr(spec.on, "project", None)
    return (spec.cloud, str(name)) if name else None


def _unsupported(spec: StackSpec) -> NoReturn:
    if isinstance(spec.layout, SlurmLayout):
        rule = "the rights of its deployer are not known here yet"
        fix = "Leave it out with -s, and make its deployer by hand: docs/how-to/slurm."
        profile = spec.layout.profile
        raise UserError([Problem("trainstack:profile", profile, rule, fix, code="bootstrap-not-supported")])
    fix = "Use aws or gcp."
    rule = "has no account of its own to set up"
    raise UserError([Problem("trainstack:cloud", spec.cloud, rule, fix, code="bootstrap-not-supported")])


def _several_regions(place: str, specs: Sequence[StackSpec]) -> Iterator[Problem]:
    """Names of the bucket, readers, boundaries and budget have no region: a second setup would collide."""
    regions = {spec.name: spec.region for spec in specs}
    if len({*regions.values()}) > 1:
        rule = f"{place} has stacks of several regions, but its state, readers and boundaries are of one"
        fix = "Give the stacks of each region an account or a project of their own."
        yield Problem("trainstack:region", regions, rule, fix, code="bootstrap-several-regions")


def client_name(folder: Path) -> str:
    """The client of a folder: its project's name, else the folder's."""
    file = folder / "Pulumi.yaml"
    content = read(file, file.name) if file.is_file() else None
    named = content.get("name") if isinstance(content, Mapping) else None
    return str(named or folder.name)
