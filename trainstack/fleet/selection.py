"""Selection of stacks: by client, cloud, environment, tag, and by what changed since a commit."""

import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from infra.errors import Problem, UserError, nearest_first
from trainstack.fleet.stacks import FleetStack, FleetStacks


@dataclass(frozen=True)
class Selection:
    """Conditions that a stack must meet, all of them; an empty one is met by every stack."""

    clients: tuple[str, ...] = ()
    clouds: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Any of these tags."""
    changed_since: str = ""
    """A commit of the repositories of the clients' folders."""


def selected(fleet: FleetStacks, names: Collection[str], selection: Selection) -> FleetStacks:
    """The selected stacks, and the problems of the selected clients; `names` are those of all clients.

    Raises UserError for a condition that can never be met, or if no stack is left.
    """
    _require_known("--client", selection.clients, names)
    if not fleet.problems:  # else the missing stacks may have them
        _require_known("--cloud", selection.clouds, {one.cloud for one in fleet.stacks})
        _require_known("--environment", selection.environments, {one.environment for one in fleet.stacks})
        _require_known("--tag", selection.tags, {tag for one in fleet.stacks for tag in one.client.tags})
    stacks = [one for one in fleet.stacks if _meets(one, selection)]
    if selection.changed_since:
        stacks = list(_changed(stacks, selection.changed_since))
    problems = {
        name: found
        for name, found in fleet.problems.items()
        if not selection.clients or name in selection.clients
    }
    if not stacks and not problems and not selection.changed_since:
        fix = "Leave a condition out; `trainstack fleet list` shows what there is."
        raise UserError(
            [Problem("selection", None, "no stack meets all conditions", fix, code="no-stack-selected")]
        )
    return FleetStacks(tuple(stacks), problems)


def _meets(stack: FleetStack, selection: Selection) -> bool:
    return (
        (not selection.clients or stack.client.name in selection.clients)
        and (not selection.clouds or stack.cloud in selection.clouds)
        and (not selection.environments or stack.environment in selection.environments)
        and (not selection.tags or bool({*stack.client.tags} & {*selection.tags}))
    )


def _require_known(option: str, given: Iterable[str], known: Collection[str]) -> None:
    problems = [
        Problem(
            option, one, "no stack of the fleet has it", nearest_first(one, known), code="selection-unknown"
        )
        for one in given
        if one not in known
    ]
    if problems:
        raise UserError(problems)


def _changed(stacks: Sequence[FleetStack], revision: str) -> Iterator[FleetStack]:
    """Stacks whose stack file, or another file of whose client, differs from a commit or is not committed."""
    if shutil.which("git") is None:
        fix = "Install git, or leave the option out."
        raise UserError([Problem("--changed-since", None, "needs git", fix, code="program-missing")])
    by_folder: dict[Path, frozenset[str]] = {}
    problems: list[Problem] = []
    for folder in dict.fromkeys(one.folder for one in stacks):
        try:
            by_folder[folder] = _differing(folder, revision)
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(problems)
    for one in stacks:
        own = ("Pulumi.yaml", f"Pulumi.{one.name}.yaml")
        if any(name in own or not fnmatch(name, "Pulumi.*.yaml") for name in by_folder[one.folder]):
            yield one


def _differing(folder: Path, revision: str) -> frozenset[str]:
    if _git(folder, "rev-parse", "--is-inside-work-tree") is None:
        fix = "Run `git init` there, or leave out --changed-since."
        rule = "is not in a git repository"
        raise UserError([Problem("--changed-since", str(folder), rule, fix, code="folder-without-git")])
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        rule = f"is not a commit of the repository of {folder}"
        fix = "Name a commit, branch or tag of it; fetch it in a shallow clone."
        raise UserError([Problem("--changed-since", revision, rule, fix, code="revision-unknown")])
    changed = _git(folder, "diff", "-z", "--name-only", "--relative", commit.strip(), "--", ".")
    new = _git(folder, "ls-files", "-z", "--others", "--exclude-standard", "--", ".")
    return frozenset(filter(None, f"{changed or ''}\0{new or ''}".split("\0")))


def _git(folder: Path, *words: str) -> str | None:
    """The output; None where the command fails. Programs that a repository configures are not run."""
    settings = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    done = subprocess.run(
        ["git", *settings, "-C", str(folder), *words], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None
