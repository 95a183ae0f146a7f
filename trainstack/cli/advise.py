"""`trainstack advise`: which machines a run needs, for how long and how much, and why others lost."""

import datetime
import json
import re
from typing import Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.queue import As, Format

app = typer.Typer(help="Which machines a run of training needs, and whether to buy or to rent them.")
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:[eE]\d+)?)\s*([kKMBT]?)")
_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@app.callback(invoke_without_command=True)
def advise(
    context: typer.Context,
    *,
    parameters: Annotated[str, typer.Option(help="Of the model, such as 7B or 350M.")] = "",
    tokens: Annotated[str, typer.Option(help="To train on, repetitions included, such as 500M.")] = "",
    method: Annotated[str, typer.Option(help="full, lora or qlora.")] = "full",
    length: Annotated[int, typer.Option("--context", help="Tokens of a sequence.")] = 2048,
    deadline: Annotated[float | None, typer.Option(help="Hours that the run may take.")] = None,
    budget: Annotated[float | None, typer.Option(help="Dollars that the run may cost.")] = None,
    spot: Annotated[bool, typer.Option("--spot", help="It checkpoints: machines may be taken back.")] = False,
    cloud: Annotated[str, typer.Option(help="aws or gcp; both without it.")] = "",
    region: Annotated[str, typer.Option(help="Only its prices; the cheapest region without it.")] = "",
    people: Annotated[int | None, typer.Option(help="Who train: names the profile that suits them.")] = None,
    month: Annotated[
        float | None, typer.Option("--usd-per-month", help="That they spend on training.")
    ] = None,
    granted: Annotated[
        bool, typer.Option("--assumptions", help="Show what the estimate takes for granted, with sources.")
    ] = False,
    form: As = Format.TABLE,
) -> None:
    """Show the cheapest machines on which a run fits in time, with the arithmetic, and why others lost.

    Reads the catalogs alone: no account, no network. A price that is older than its source allows is named.
    """
    if context.invoked_subcommand is not None:
        return
    from trainstack.advice import CLOUDS, Question, advise  # noqa: PLC0415 - help comes without them
    from trainstack.advice.profiles import profile  # noqa: PLC0415
    from trainstack.advice.report import document, lines  # noqa: PLC0415

    asked = Question(
        parameters=_count("--parameters", parameters, "7B"),
        tokens=_count("--tokens", tokens, "500M"),
        method=method,  # type: ignore[arg-type]  # judged by Question
        context=length,
        deadline_h=deadline,
        budget_usd=budget,
        spot=spot,
    )
    if cloud not in ("", *CLOUDS):
        raise UserError([Problem("--cloud", cloud, "must be aws or gcp", "Leave it out for both.")])
    found = advise(asked, (cloud,) if cloud else CLOUDS, region or None)  # type: ignore[arg-type]
    suited = None if people is None else profile(people, month)
    if form is Format.JSON:
        more = {} if suited is None else {"profile": suited.profile, "why": suited.why}
        typer.echo(json.dumps(document(found) | more, indent=2))
        return
    for line in lines(found, datetime.datetime.now(datetime.UTC).date(), granted=granted):
        typer.echo(line)
    if suited is not None:
        typer.echo(f"profile  {suited.profile}: {suited.why}")


@app.command()
def own(
    *,
    price_usd: Annotated[float, typer.Option(help="Of all servers, with network and racks.")],
    gpus: Annotated[int, typer.Option(help="In all of them.")],
    kw: Annotated[float, typer.Option(help="That they draw, with cooling.")],
    usd_per_kwh: Annotated[float, typer.Option(help="Of power.")],
    cloud_usd_per_gpu_hour: Annotated[float, typer.Option(help="That you pay in the cloud.")],
    use: Annotated[float, typer.Option(help="Share of all hours in which the GPUs train, 0 to 1.")],
    staff_usd_per_year: Annotated[float, typer.Option(help="For the people who run them.")] = 0,
    maintenance_share: Annotated[float, typer.Option(help="Of the price, each year, 0 to 1.")] = 0.05,
    skills: Annotated[bool, typer.Option(help="There are people and a place for them.")] = False,
    must_stay: Annotated[bool, typer.Option(help="Data may not leave the house.")] = False,
) -> None:
    """Show whether to buy servers or to rent them, from which use on they pay, and why."""
    from trainstack.advice.ownership import Servers, judge  # noqa: PLC0415
    from trainstack.advice.report import verdict_lines  # noqa: PLC0415

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
    for line in verdict_lines(judge(asked)):
        typer.echo(line)


def _count(option: str, text: str, example: str) -> float:
    found = _COUNT.fullmatch(text.strip())
    if found is None:
        raise UserError(
            [Problem(option, text, "must be a number, or one with k, M, B or T", f"Such as {example}.")]
        )
    return float(found[1]) * _FACTORS[found[2]]
