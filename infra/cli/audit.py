"""`trainstack audit`: the rules of the policy pack on an exported state or a preview."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError

if TYPE_CHECKING:
    from policies.audit import Audit
    from policies.resource import Resource


class Format(StrEnum):
    """How the result is written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"


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
Written = Annotated[
    Format,
    typer.Option("--format", help="For people, programs (every outcome), code scanning, CI, pull requests."),
]
Waivers = Annotated[
    Path | None, typer.Option("--waivers", help="Violations that somebody answers for.", metavar="FILE")
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Settings and rules that differ for an environment or a client.", metavar="FILE"
    ),
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="A stack without resources is no error.")]


def audit(
    state: State = None,
    preview: Preview = None,
    *,
    fail_on: Least = FailOn.LOW,
    format: Written = Format.TEXT,
    waivers: Waivers = None,
    config: Config = None,
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
        source = state or preview
        assert source
        resources = _read(source, allow_empty, planned=preview is not None)
        found = _audited(source.name, resources, waivers, config, fail_on)
        typer.echo(_written(found, format))
    except UserError:
        raise
    except Exception as error:
        typer.echo(f"internal error: {type(error).__name__}: {error}", err=True)
        raise typer.Exit(ExitCode.INTERNAL_ERROR) from None
    raise typer.Exit(found.code)


def _read(file: Path, allow_empty: bool, *, planned: bool) -> "list[Resource]":
    from policies.sources import preview, state  # noqa: PLC0415

    read = preview.read if planned else state.read
    return read(file, allow_empty=allow_empty)


def _audited(
    source: str, resources: "list[Resource]", waivers: Path | None, config: Path | None, fail_on: FailOn
) -> "Audit":
    from policies import configuration  # noqa: PLC0415
    from policies.audit import Audit  # noqa: PLC0415
    from policies.catalogue import in_order  # noqa: PLC0415
    from policies.evaluate import evaluate  # noqa: PLC0415
    from policies.rules import CATALOGUE  # noqa: PLC0415
    from policies.stack import Stack  # noqa: PLC0415
    from policies.verdict import verdict  # noqa: PLC0415

    rules = CATALOGUE.rules
    how = configuration.read(config, rules) if config else configuration.Configuration()
    outcomes = evaluate(Stack(resources, how.settings), in_order(rules), how.enforced)
    advice: tuple[str, ...] = ()
    if waivers is not None:
        from policies.waivers.applied import applied  # noqa: PLC0415 - slow to import
        from policies.waivers.document import read  # noqa: PLC0415

        today = how.settings.today
        outcomes, advice = applied(outcomes, read(waivers, rules, today), today)
    return Audit(source, outcomes, len(resources), verdict(outcomes, fail_on.value), advice)


def _written(found: "Audit", format: Format) -> str:
    from policies.report import junit, markdown, outcomes, sarif, text  # noqa: PLC0415

    writers = {
        Format.TEXT: text.document, Format.JSON: outcomes.document, Format.SARIF: sarif.document,
        Format.JUNIT: junit.document, Format.MARKDOWN: markdown.document,
    }  # fmt: skip
    return writers[format](found)
