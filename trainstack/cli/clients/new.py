"""`trainstack new`: the folder of a client."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from trainstack import extras

if TYPE_CHECKING:
    from trainstack.stamp.choices import ClientChoices
    from trainstack.stamp.client import ClientFiles
    from trainstack.stamp.verdict import StackVerdict

_NEEDED = ("cloud", "profile", "region", "owner", "budget")
Name = Annotated[
    str, typer.Argument(metavar="CLIENT", help="Name of the client: folder, project, start of its stacks.")
]
Cloud = Annotated[str, typer.Option("--cloud", help="aws or gcp.")]
Profile = Annotated[
    str, typer.Option("--profile", help="Size of the team: small, small-cluster, medium or large-slurm.")
]
Region = Annotated[str, typer.Option("--region", help="Region of the cloud.")]
Owner = Annotated[str, typer.Option("--owner", help="Owner and address of alarms, such as ml@acme.com.")]
Budget = Annotated[int | None, typer.Option("--budget", help="US dollars per month of each environment.")]
Account = Annotated[
    str, typer.Option("--account", help="AWS account or Google Cloud project; default: an example.")
]
FromAdvice = Annotated[
    Path | None,
    typer.Option(
        "--from-advice",
        metavar="FILE",
        help="Output of `trainstack advise --format json`: cloud, region, size, and a pool of its machine.",
    ),
]
Rehearse = Annotated[
    bool,
    typer.Option("--rehearse", help="First deploy the environment for development in emulated clouds here."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take defaults for missing options.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the files, and write none.")]


def new(
    name: Name,
    *,
    cloud: Cloud = "",
    profile: Profile = "",
    region: Region = "",
    owner: Owner = "",
    budget: Budget = None,
    account: Account = "",
    from_advice: FromAdvice = None,
    rehearse: Rehearse = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Create the folder of a client with an environment for development and one for production.

    Shows the price and the verdict of the policies first. Existing files are not overwritten.
    """
    from trainstack.cli.clients import dialogue  # noqa: PLC0415 - help needs none of them
    from trainstack.stamp import client, environment, neighbours, rehearsed, verdict  # noqa: PLC0415
    from trainstack.stamp import folder as folders  # noqa: PLC0415

    if rehearse:
        extras.require_rehearse("new --rehearse")
    given: Mapping[str, object] = {
        "cloud": cloud, "profile": profile, "region": region, "owner": owner, "budget": budget,
        "account": account,
    }  # fmt: skip
    if from_advice:
        given = _advised(given, from_advice)
    asked = not yes and dialogue.has_terminal() and any(not given[one] for one in _NEEDED)
    choices = _complete(name, given, defaults=yes)
    folder = Path(name)
    with verdict.Judging(choices.cloud, choices.profile) as judging:
        files = client.render(choices)
        if not dry_run:
            folders.check_new(files.stamped, folder)
        neighbours.check(choices, folder)
        _show(files, judging.verdicts(files.texts, name, [*files.loaded]))
    if dry_run:
        for path, text in files.texts.items():
            typer.echo(f"--- {name}/{path}\n{text}")
        typer.echo(f"Would write {len(files.stamped)} files into {name}/")
        return
    if rehearse and (code := rehearsed.up(files.stamped, name, next(iter(choices.stacks)))):
        typer.echo("Nothing was written: the rehearsal failed.", err=True)
        raise typer.Exit(code)
    if asked:
        typer.confirm(f"Write {len(files.stamped)} files into {name}/?", abort=True)
    folders.write(files.stamped, folder)
    environment.link(folder)
    typer.echo(f"Wrote {len(files.stamped)} files into {name}/")
    first = next(iter(choices.stacks))
    typer.echo(f"Next\n  cd {name}\n  trainstack up -s {first} --rehearse --yes")


def _advised(given: Mapping[str, object], file: Path) -> dict[str, object]:
    """The given options over those of advice. Raises UserError for another cloud than that of its machine."""
    from trainstack.stamp import advised  # noqa: PLC0415
    from trainstack.stamp.clouds import PAIRS  # noqa: PLC0415

    found = advised.read(file)
    if given["cloud"] and given["cloud"] != found["cloud"]:
        rule = f"contradicts --from-advice, whose machine is on {found['cloud']}"
        fix = f"Leave it out, or ask `trainstack advise --cloud {given['cloud']}`."
        raise UserError([Problem("--cloud", given["cloud"], rule, fix, code="advice-of-other-cloud")])
    stamped = {profile for profile, cloud in PAIRS if cloud == found["cloud"]}
    if not given["profile"] and found["profile"] and found["profile"] not in stamped:
        rule, fix = "suits a size that is not supported", f"Add --profile: {', '.join(sorted(stamped))}."
        raise UserError([Problem("--from-advice", found["profile"], rule, fix, code="advice-of-other-size")])
    return {**found, **{name: value for name, value in given.items() if value or name not in found}}


def _complete(name: str, given: Mapping[str, object], *, defaults: bool) -> "ClientChoices":
    """The choices with every value. Raises UserError, outside of a terminal, with the missing options."""
    from trainstack.cli.clients import dialogue  # noqa: PLC0415
    from trainstack.stamp.choices import ClientChoices, check  # noqa: PLC0415
    from trainstack.stamp.stack_file import completed  # noqa: PLC0415

    missing = [f"--{one}" for one in _NEEDED if given[one] in ("", None)]
    if missing and not defaults:
        if not dialogue.has_terminal():
            rule = f"required without a terminal: {', '.join(missing)}"
            fix = "Add them, add --yes for the defaults, or run it in a terminal."
            raise UserError([Problem("options", None, rule, fix, code="required-option-missing")])
        given = dialogue.ask(name, given)
    budget = given["budget"]
    cloud, profile = str(given["cloud"] or "aws"), str(given["profile"] or "medium")
    region, owner, account = (str(given[one] or "") for one in ("region", "owner", "account"))
    number = max(0, budget) if isinstance(budget, int) else 0
    choices = ClientChoices(name, cloud, profile, region, owner, number, account)
    if given.get("machine"):
        machine, market, nodes = str(given["machine"]), str(given["market"]), int(str(given["nodes"]))
        choices = replace(choices, machine=machine, market=market, nodes=nodes)
    problems = [*_budget_problems(budget), *_reserved_problems(choices)]
    try:
        check(choices)
    except UserError as error:
        problems += error.problems
    if problems:
        raise UserError(problems)
    return completed(choices)


def _budget_problems(budget: object) -> Iterator[Problem]:
    if isinstance(budget, int) and budget < 1:
        rule, fix = "must be 1 US dollar per month or more", "Such as 2000."
        yield Problem("--budget", budget, rule, fix, code="budget-invalid")


def _reserved_problems(choices: "ClientChoices") -> Iterator[Problem]:
    """The boundary of deployers keeps names of their own for the administrator (`trainstack bootstrap`)."""
    from trainstack.stamp.clouds import STAMPED  # noqa: PLC0415

    reserved = STAMPED[choices.cloud].reserved if choices.cloud in STAMPED else ()
    if any(stack.startswith(reserved) for stack in choices.stacks):
        rule = f"makes stacks that no deployer may change: their names begin with {' or '.join(reserved)}"
        yield Problem("CLIENT", choices.name, rule, "Choose another CLIENT.", code="client-name-reserved")


def _show(files: "ClientFiles", found: Mapping[str, "StackVerdict"]) -> None:
    """Print price and verdict of each environment. Raises typer.Exit where a policy is violated."""
    from infra import cost  # noqa: PLC0415

    today, uses = datetime.date.today(), ""
    for stack, loaded in files.loaded.items():
        price = cost.estimate(loaded.spec, today)
        typer.echo(f"{stack}")
        budget = f"budget ${files.choices.budget:,}"
        typer.echo(f"  cost per month  {price.line(loaded.spec.region)}; {budget}")
        if price.expected is not None and price.expected > files.choices.budget:
            typer.echo("  over budget     the expected cost is above it: raise it, or use fewer machines")
        above, uses = uses, "; ".join(map(str, price.uses))
        if uses != above:  # environments have mostly the same: once
            typer.echo(f"  not priced      {uses}")
        typer.echo(f"  policies        {found[stack].line}")
        for line in found[stack].violations:
            typer.echo(f"    violated      {line}")
    if any(one.violations for one in found.values()):
        typer.echo("Nothing was written: change the options.", err=True)
        raise typer.Exit(ExitCode.VIOLATIONS)
