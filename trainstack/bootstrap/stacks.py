"""Stacks of a client, read from its folder, by the place that they are deployed to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra import stackspec
from infra.errors import Problem, UserError, collected, raise_all
from infra.stackspec import StackSpec
from infra.stackspec.document import read
from infra.stackspec.load import stacks


@dataclass(frozen=True)
class BootstrapPlace:
    """Stacks of one account in one region, or of one project."""

    cloud: str
    name: str
    """Account id or project id."""
    region: str
    specs: tuple[StackSpec, ...]

    @property
    def emails(self) -> tuple[str, ...]:
        """Contacts of the budgets, each once."""
        return tuple(dict.fromkeys(one for spec in self.specs for one in spec.budget.alert_emails))

    @property
    def monthly_usd(self) -> float:
        """US dollars per month, of all stacks."""
        return sum(spec.budget.monthly_usd for spec in self.specs)


def place(folder: Path, chosen: Sequence[str]) -> BootstrapPlace:
    """The place of the chosen stacks, all of the folder by default.

    Raises UserError for invalid stacks, and for stacks of several places: each is set up on its own.
    """
    names = list(chosen) or stacks(folder)
    if not names:
        fix = "Name the folder of a client with a file Pulumi.<stack>.yaml."
        rule = "has no stacks" if folder.is_dir() else "is no folder"
        raise UserError([Problem("CLIENT", str(folder), rule, fix, code="bootstrap-no-stacks")])
    found, problems = list[StackSpec](), list[Problem]()
    for name in names:
        with collected(problems):
            found.append(stackspec.load_file(name, folder).spec)
            _where(found[-1])
    raise_all(problems)
    specs = tuple(found)
    places = {_where(spec): spec.name for spec in specs}
    if len(places) > 1:
        rule = f"the stacks are of several places: {'; '.join(' '.join(where) for where in places)}"
        fix = f"Choose those of one place with -s: {', '.join(names)}."
        raise UserError([Problem("--stack", None, rule, fix, code="bootstrap-several-places")])
    ((cloud, name, region),) = places
    return BootstrapPlace(cloud, name, region, specs)


def _where(spec: StackSpec) -> tuple[str, str, str]:
    name = getattr(spec.on, "account_id", None) or getattr(spec.on, "project", None)
    if name:
        return spec.cloud, str(name), spec.region
    fix = "Use aws or gcp."
    rule = "has no account of its own to set up"
    raise UserError([Problem("trainstack:cloud", spec.cloud, rule, fix, code="bootstrap-not-supported")])


def client_name(folder: Path) -> str:
    """The client of a folder: its project's name, else the folder's."""
    file = folder / "Pulumi.yaml"
    content = read(file, file.name) if file.is_file() else None
    named = content.get("name") if isinstance(content, Mapping) else None
    return str(named or folder.name)
