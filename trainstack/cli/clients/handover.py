"""`trainstack handover`: the bundle that a client keeps."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra import places
from infra.errors import Problem, UserError
from infra.places import PACKAGES
from trainstack.cli.clients.report import At, Config, Drift, Environment, Versions, Waivers
from trainstack.cli.output import print_fields
from trainstack.cli.stack import Rehearse

if TYPE_CHECKING:  # help does not need it
    from trainstack.dossier.facts import StackFacts

# In the client's folder, but with the packages of this installation first, whatever the folder contains.
_START = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from trainstack.cli import main
main()
"""
Client = Annotated[
    Path | None, typer.Argument(metavar="CLIENT", help="Folder of the client; default: the one around.")
]
Stacks = Annotated[
    list[str] | None, typer.Option("--stack", "-s", help="Stacks of the client; default: all of the folder.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="New folder, or new FILE.zip.", metavar="DIR|FILE.zip"),
]
FleetFile = Annotated[
    Path | None,
    typer.Option("--fleet", help="Fleet file, for the names of other clients.", metavar="FILE"),
]
Accepted = Annotated[
    list[str] | None,
    typer.Option("--accept-name", help="Name of another client that may be in the files.", metavar="NAME"),
]

Gaps = Annotated[
    bool,
    typer.Option("--with-gaps", help="Write the bundle although a state cannot be read; it says so."),
]


def handover(
    client: Client = None,
    *,
    stack: Stacks = None,
    rehearse: Rehearse = False,
    out: Out = None,
    at: At = None,
    config: Config = None,
    environment: Environment = None,
    waivers: Waivers = None,
    drift: Drift = True,
    versions: Versions = True,
    fleet: FleetFile = None,
    accept_name: Accepted = None,
    with_gaps: Gaps = False,
) -> None:
    """Write what a client keeps: reports, outputs, inventory, evidence, runbooks, the way out.

    Nothing is written where a state cannot be read, or a file has a secret or the name of another client.
    Changes no stack.
    """
    from policies.evidence import writer  # noqa: PLC0415 - help needs none of them
    from trainstack.cli.clients.collected import Wanted, collect  # noqa: PLC0415
    from trainstack.cli.operations.policy_files import PolicyFiles  # noqa: PLC0415
    from trainstack.handover import contents, scan  # noqa: PLC0415
    from trainstack.handover.neighbours import names_of_others  # noqa: PLC0415

    if client is not None and client.resolve() != places.CLIENT:
        _continue_in(client)
    names = _stacks(stack)
    folder = places.CLIENT or places.CHECKOUT or Path.cwd()
    target = out or Path(f"handover-{folder.name}")
    writer.check_new(target, "--out")
    others = names_of_others(folder, fleet) - {folder.name, *names, *(accept_name or ())}
    policies = PolicyFiles(config, environment, waivers)
    collected = [
        collect(Wanted(name, rehearse, at, policies, drift, versions, with_evidence=True)) for name in names
    ]
    if not with_gaps:
        _require_read(collected)
    files = contents.bundle(folder.name, [(facts, facts.evidence) for facts in collected])
    problems = [*scan.secrets(files, os.environ), *scan.names(files, others)]
    if problems:
        raise UserError(problems)
    writer.write(target, files, "--out")
    short = sorted(name for name in others if len(name) < scan.SHORTEST_NAME)
    fields = [
        ("bundle", str(target)),
        ("stacks", ", ".join(names)),
        ("files", f"{len(files)}, without secrets and the names of {len(others) - len(short)} other clients"),
    ]
    if short:
        fields.append(("not looked for", f"{', '.join(short)}: names this short are in every text"))
    print_fields(fields)


def _require_read(collected: Sequence["StackFacts"]) -> None:
    """Raise the errors of stacks whose state was not read, or is not at the backend."""
    unread = [(one.stack, one.unread) for one in collected if one.unread is not None]
    for _, error in unread:
        if not isinstance(error, UserError):
            raise error
    gap = "Or hand over without what exists in it: --with-gaps."
    problems = [
        replace(
            problem,
            path=f"{stack}.{problem.path}",
            fix=f"{problem.fix} {gap}",
        )
        for stack, error in unread
        if isinstance(error, UserError)
        for problem in error.problems
    ]
    if problems:
        raise UserError(problems)


def _continue_in(client: Path) -> None:
    """Run the same command in the folder of a client: that of a process is fixed when it starts."""
    if places.client_folder_at(client) is None:
        rule, fix = "is no folder of a client", "Name a folder that `trainstack new` made."
        raise UserError([Problem("CLIENT", str(client), rule, fix, code="client-folder-missing")])
    words = sys.argv[1:]
    here = Path.cwd()
    kept = [one for one in words if one != str(client)]
    for option in ("--out", "-o", "--config", "--waivers", "--fleet"):
        for index, word in enumerate(kept):
            if word == option and index + 1 < len(kept):
                kept[index + 1] = str(here / kept[index + 1])
            elif word.startswith(f"{option}="):
                kept[index] = f"{option}={here / word.partition('=')[2]}"
    os.chdir(client)
    os.execv(sys.executable, [sys.executable, "-I", "-c", _START, str(PACKAGES), *kept])  # noqa: S606


def _stacks(given: list[str] | None) -> list[str]:
    from infra.stackspec.load import require_file, stacks  # noqa: PLC0415

    if not given and not places.CLIENT:
        rule, fix = (
            "the stacks of a checkout belong to no client",
            "Add -s NAME, or name the folder of a client.",
        )
        raise UserError([Problem("--stack", None, rule, fix, code="stack-not-chosen")])
    for name in given or ():
        require_file(name)
    return list(dict.fromkeys(given)) if given else stacks()
