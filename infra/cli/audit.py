"""`trainstack audit`: the rules of the policy pack on an exported state or a preview."""

import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError

if TYPE_CHECKING:
    from policies.resource import Resource


class Format(StrEnum):
    """How the result is written."""

    TEXT = "text"
    JSON = "json"


class FailOn(StrEnum):
    """The least severity that counts."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


State = Annotated[
    Path | None, typer.Option("--state", help="What `pulumi stack export --file FILE` wrote.", metavar="FILE")
]
Preview = Annotated[
    Path | None,
    typer.Option("--preview", help="What `pulumi preview --json --show-sames` wrote.", metavar="FILE"),
]
Least = Annotated[FailOn, typer.Option("--fail-on", help="Count what is as severe as this, or more.")]
Written = Annotated[Format, typer.Option("--format", help="For people, or every outcome as JSON.")]
Waivers = Annotated[
    Path | None, typer.Option("--waivers", help="Violations that somebody answers for.", metavar="FILE")
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="A stack without resources is no error.")]


def audit(
    state: State = None,
    preview: Preview = None,
    *,
    fail_on: Least = FailOn.LOW,
    format: Written = Format.TEXT,
    waivers: Waivers = None,
    allow_empty: AllowEmpty = False,
) -> None:
    """Judge a stack by the rules of the policy pack (docs/policies.md), without any cloud.

    Exit codes: 0 clean, 1 internal error, 2 usage or a file that cannot be read, 3 violations, 4 nothing
    but undetermined, 5 violations whose waivers have expired and no others. Only what is as severe as
    --fail-on counts.
    """
    if (state is None) == (preview is None):
        given = None if state is None else "both"
        raise UserError([Problem("--state, --preview", given, "one of them is needed", "Name one file.")])
    from policies.verdict import ExitCode  # noqa: PLC0415 - help comes without the rules

    try:
        code = _audited(_resources(state, preview, allow_empty), waivers, fail_on, format)
    except UserError:
        raise
    except Exception as error:
        typer.echo(f"internal error: {type(error).__name__}: {error}", err=True)
        raise typer.Exit(ExitCode.INTERNAL_ERROR) from None
    raise typer.Exit(code)


def _resources(state: Path | None, preview: Path | None, allow_empty: bool) -> "list[Resource]":
    from policies.sources import preview as previews  # noqa: PLC0415
    from policies.sources import state as states  # noqa: PLC0415

    if state is not None:
        return states.read(state, allow_empty=allow_empty)
    return previews.read(preview, allow_empty=allow_empty) if preview is not None else []


def _audited(resources: "list[Resource]", waivers: Path | None, fail_on: FailOn, format: Format) -> int:
    from policies.audit import Audit  # noqa: PLC0415
    from policies.catalogue import in_order  # noqa: PLC0415
    from policies.evaluate import evaluate  # noqa: PLC0415
    from policies.report import plain, text  # noqa: PLC0415
    from policies.rules import CATALOGUE  # noqa: PLC0415
    from policies.stack import Stack  # noqa: PLC0415
    from policies.verdict import verdict  # noqa: PLC0415

    outcomes, advice = evaluate(Stack(resources), in_order(CATALOGUE.rules)), tuple[str, ...]()
    if waivers is not None:
        from policies.waivers.applied import applied  # noqa: PLC0415 - slow to import
        from policies.waivers.document import read  # noqa: PLC0415

        today = datetime.datetime.now(datetime.UTC).date()
        outcomes, advice = applied(outcomes, read(waivers, CATALOGUE.rules, today), today)
    found = Audit(outcomes, len(resources), verdict(outcomes, fail_on.value), advice)
    if format is Format.JSON:
        typer.echo(plain.document(found))
    else:
        for line in text.lines(found):
            typer.echo(line)
    return found.code
