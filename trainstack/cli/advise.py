"""`trainstack advise`: machines for a training run, with duration, cost and rejected alternatives."""

import datetime
import re
from collections.abc import Mapping
from typing import Annotated

import typer

from infra.errors import Problem, UserError, did_you_mean
from trainstack.cli.output import Format, FormatOption, print_fields, print_json

app = typer.Typer(help="Choose machines for a training run, and compare owning them with renting.")
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:[eE]\d+)?)\s*([kKMBT]?)")
_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@app.callback(invoke_without_command=True)
def advise(
    context: typer.Context,
    *,
    parameters: Annotated[str, typer.Option(help="Required: parameters of the model, such as 7B.")] = "",
    tokens: Annotated[str, typer.Option(help="Required: tokens with repetitions, such as 500M.")] = "",
    method: Annotated[str, typer.Option(help="Training method: full, lora or qlora.")] = "full",
    length: Annotated[int, typer.Option("--context", help="Sequence length in tokens.")] = 2048,
    deadline: Annotated[float | None, typer.Option(help="Longest duration in hours.")] = None,
    budget: Annotated[float | None, typer.Option(help="Highest cost of the run in US dollars.")] = None,
    spot: Annotated[bool, typer.Option("--spot", help="The run checkpoints: allow spot machines.")] = False,
    flex_start: Annotated[
        bool, typer.Option("--flex-start", help="Allow machines to wait for, for seven days at most.")
    ] = False,
    cloud: Annotated[str, typer.Option(help="aws or gcp; both by default.")] = "",
    region: Annotated[str, typer.Option(help="Region of the prices; the cheapest one by default.")] = "",
    people: Annotated[int | None, typer.Option(help="People who train; adds a suitable profile.")] = None,
    month: Annotated[
        float | None, typer.Option("--usd-per-month", help="Monthly spending on training.")
    ] = None,
    granted: Annotated[
        bool, typer.Option("--assumptions", help="Show the assumptions of the estimate, with sources.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the cheapest machines that fit a run, with the arithmetic, and why others do not fit.

    Reads the catalogs alone: no account, no network. Prices older than their source allows are marked.
    """
    if context.invoked_subcommand is not None:
        return
    from trainstack.advice import CLOUDS, Question, advise  # noqa: PLC0415 - help needs none of them
    from trainstack.advice.profiles import profile  # noqa: PLC0415
    from trainstack.advice.report import SCHEMA, UNTESTED, document, fields  # noqa: PLC0415

    _require({"--parameters": (parameters, "7B"), "--tokens": (tokens, "500M")})
    asked = Question(
        parameters=count("--parameters", parameters, "7B"),
        tokens=count("--tokens", tokens, "500M"),
        method=method,  # type: ignore[arg-type]  # validated by Question
        context=length,
        deadline_h=deadline,
        budget_usd=budget,
        spot=spot,
        flex_start=flex_start,
    )
    if cloud not in ("", *CLOUDS):
        fix = did_you_mean(cloud, CLOUDS, "Leave it out for both.")
        raise UserError([Problem("--cloud", cloud, "must be aws or gcp", fix, code="unknown-cloud")])
    found = advise(asked, (cloud,) if cloud else CLOUDS, region or None)  # type: ignore[arg-type]
    suited = None if people is None else profile(people, month)
    if form is Format.JSON:
        more = {} if suited is None else {"profile": suited.profile, "why": suited.why}
        print_json(SCHEMA, document(found) | more)
        return
    today = datetime.datetime.now(datetime.UTC).date()
    profile_field = [] if suited is None else [("profile", f"{suited.profile}: {suited.why}")]
    print_fields([*fields(found, today, granted=granted), *profile_field])
    typer.echo(UNTESTED)


@app.command()
def own(
    *,
    price_usd: Annotated[float, typer.Option(help="Price of all servers, with network and racks.")],
    gpus: Annotated[int, typer.Option(help="GPUs of all servers.")],
    kw: Annotated[float, typer.Option(help="Power of all servers, with cooling.")],
    usd_per_kwh: Annotated[float, typer.Option(help="Price of power.")],
    cloud_usd_per_gpu_hour: Annotated[float, typer.Option(help="Price of the same GPU in the cloud.")],
    use: Annotated[float, typer.Option(help="Share of all hours in which the GPUs train, 0 to 1.")],
    staff_usd_per_year: Annotated[float, typer.Option(help="Cost of operators.")] = 0,
    maintenance_share: Annotated[float, typer.Option(help="Yearly share of the price, 0 to 1.")] = 0.05,
    skills: Annotated[bool, typer.Option(help="Operators and a site are available.")] = False,
    must_stay: Annotated[bool, typer.Option(help="Data must stay on premises.")] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Compare owned servers with rented ones: recommendation, payback and break-even utilization."""
    from trainstack.advice.ownership import Servers, judge  # noqa: PLC0415
    from trainstack.advice.report import ownership_document, ownership_fields  # noqa: PLC0415

    asked = Servers(
        price_usd=price_usd,
        gpus=gpus,
        kw=kw,
        usd_per_kwh=usd_per_kwh,
        staff_usd_per_year=staff_usd_per_year,
        maintenance_share=maintenance_share,
        use=use,
        cloud_usd_per_gpu_hour=cloud_usd_per_gpu_hour,
        skills=skills,
        must_stay=must_stay,
    )
    found = judge(asked)
    if form is Format.JSON:
        print_json("trainstack.advice-own/1", ownership_document(found))
    else:
        print_fields(list(ownership_fields(found)))


def _require(figures: Mapping[str, tuple[str, str]]) -> None:
    problems = [
        Problem(option, None, "is required", f"Such as {option} {example}.", code="required-option-missing")
        for option, (text, example) in figures.items()
        if not text
    ]
    if problems:
        raise UserError(problems)


def count(option: str, text: str, example: str) -> float:
    """A number such as 7B. Raises UserError for any other text."""
    found = _COUNT.fullmatch(text.strip())
    if found is None:
        rule = "must be a number, or one with k, M, B or T"
        raise UserError([Problem(option, text, rule, f"Such as {example}.", code="number-invalid")])
    return float(found[1]) * _FACTORS[found[2]]
