"""`trainstack preflight`: checks of the real account or project before a deployment."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from trainstack.cli.clouds.choice import services_of
from trainstack.cli.output import Format, FormatOption, print_json, print_table
from trainstack.cli.stack import Stack

if TYPE_CHECKING:
    from infra.stackspec import StackSpec
    from trainstack.preflight.answers import Answer
    from trainstack.preflight.deployment import Preflight

SCHEMA = "trainstack.preflight/1"

NAMES = (
    "accelerators", "administrators", "alert-mail", "apis", "aws-cli", "billing", "billing-account",
    "budget-contact", "certificate", "client-secret", "cost-anomalies", "cost-tags", "deployer-trust",
    "disk-key", "gcloud", "gke-auth-plugin", "image", "job-logs", "job-plans", "job-quotas",
    "job-reservations",
    "kubernetes-version", "leftovers", "organization", "organization-policies", "permissions", "principals",
    "purchases", "quotas", "region", "reservations", "scheduler", "services", "slurm-cluster", "state-bucket",
    "tracking-login", "types", "way-in", "zones",
)  # fmt: skip
"""Checks of all clouds, for the help, which imports none of them."""
Skip = Annotated[
    list[str] | None,
    typer.Option(
        "--skip",
        metavar="CHECK",
        help=f"Check to leave out; can be repeated. Each cloud and profile has some of: {', '.join(NAMES)}.",
    ),
]
Save = Annotated[
    Path | None, typer.Option("--save", help="Write the remaining quotas, for `up --rehearse --faults FILE`.")
]


def preflight(
    stack: Stack = "", skip: Skip = None, save: Save = None, form: FormatOption = Format.TEXT
) -> None:
    """Check rights, quotas, machines and access of the account or project; of a large stack for all clusters.

    It is read-only.
    """
    from infra import stackspec  # noqa: PLC0415 - help needs none of them
    from trainstack.preflight.answers import State, exit_code  # noqa: PLC0415

    skipped = skip or []
    loaded = stackspec.load_file(stack)
    spec = loaded.spec
    clusters = _clusters(spec)
    stacks = [spec, *clusters]
    # A cluster shares quotas with its large stack, and may be on another cloud than its manager.
    together = [loaded.member.of, *_clusters(loaded.member.of)] if loaded.member else stacks
    of_stacks = {one.name: services_of(one.cloud).preflight(one, together) for one in stacks}
    made = of_stacks[spec.name]
    checks = dict.fromkeys(check for one in of_stacks.values() for check in one.checks)
    unknown = sorted({*skipped} - {*checks})
    if unknown:
        rule, fix = "there is no such check", f"Checks are {', '.join(checks)}."
        raise UserError([Problem("--skip", name, rule, fix, code="unknown-check") for name in unknown])
    if save and clusters:
        rule, fix = "quotas of several stacks are not one scenario", "Name the stack of a cluster with -s."
        raise UserError([Problem("--save", str(save), rule, fix, "--stack", code="preflight-of-several")])
    # A cluster may have fewer checks than its manager.
    every = {
        name: one.ask([check for check in one.checks if check not in skipped])
        for name, one in of_stacks.items()
    }
    answers = every[spec.name]
    code = exit_code([answer for found in every.values() for answer in found])
    # Quotas are saved only after the account of the stack has responded.
    saved = save if save and answers[0].state is State.READY else None
    unsaved = _save(made, saved) if saved else None
    if unsaved:
        saved, code = None, ExitCode.USAGE
    if form is Format.JSON:
        document = {"stack": stack, "exit_code": code, "answers": answers, "skipped": skipped, "saved": saved}
        others = {"clusters": {one.name: every[one.name] for one in clusters}} if clusters else {}
        print_json(SCHEMA, document | others)
    else:
        for name, found in every.items():
            if clusters:
                typer.echo(f"{name}\n")
            _print(found, skipped)
            if clusters:
                typer.echo("")
    if unsaved:  # all results are above, as the one document where they are JSON
        typer.echo(f"\n{unsaved}", err=True)
    elif saved and form is Format.TEXT:
        kind = made.place.partition(" ")[0]
        command = f"trainstack up -s {stack} --rehearse --faults {saved}"
        typer.echo(f"\nRehearse in this {kind}: {command}")
    raise typer.Exit(code)


def _clusters(spec: "StackSpec") -> list["StackSpec"]:
    """The specs of the clusters of a large stack, else none."""
    from infra.stackspec.clusters.large import clusters_of  # noqa: PLC0415 - help needs none of them
    from infra.stackspec.several.derived import worker  # noqa: PLC0415
    from trainstack.cli.operations.several import stacks_of  # noqa: PLC0415

    stacks_of(spec)  # each needs its file
    return [worker(spec, one.name) for one in clusters_of(spec.layout)]


def _print(answers: Sequence["Answer"], skipped: Sequence[str]) -> None:
    rows = [(answer.state, answer.check, answer.text) for answer in answers]
    print_table(("state", "check", "result"), [*rows, *(("skipped", name, "") for name in skipped)])
    for answer in answers:
        if answer.fix:  # a command as it can be pasted
            typer.echo(f"\nFix of {answer.check}:\n{answer.fix}")


def _save(made: "Preflight", file: Path) -> Problem | None:
    """Write the remaining quotas; return the problem where the file cannot be written."""
    left = "".join(f"  {key}: {amount:g}\n" for key, amount in made.left().items())
    try:
        file.write_text(f"# Remaining quotas of {made.place}.\nquotas:\n{left}")
    except OSError as error:
        rule, fix = f"cannot be written: {error.strerror}", "Choose a file in a folder that can be written."
        return Problem("--save", str(file), rule, fix, code="preflight-not-saved")
    return None
