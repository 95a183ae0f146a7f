"""Commands on a stack: `up`, `preview`, `refresh`, `destroy` and `explain`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from infra.errors import Problem, UserError
from infra.places import CHECKOUT, STACKS, located
from rehearsal.cluster_kind import ClusterKind, ProviderKind
from trainstack import extras
from trainstack.cli.operations.chosen import chosen, only
from trainstack.cli.output import (
    Format,
    FormatOption,
    format_option,
    print_warnings,
)

Stack = Annotated[
    str,
    typer.Option(
        "--stack",
        "-s",
        help="The stack: a file Pulumi.<stack>.yaml of the folder, or in a checkout of stacks/config. "
        "Default: the only one.",
        show_default=False,
        callback=chosen,
    ),
]
Rehearse = Annotated[
    bool, typer.Option("--rehearse", help="Use the emulated clouds on this machine instead of the real ones.")
]
Cluster = Annotated[
    ClusterKind | None,
    typer.Option(
        "--cluster",
        help="With --rehearse: emulated Kubernetes, or a real control plane. Kept for later commands.",
    ),
]
Provider = Annotated[
    ProviderKind | None,
    typer.Option(
        "--provider",
        help="With --cluster real: the provider of trainstack, or the installed pulumi-resource-kubernetes.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change without confirmation.")]
Now = Annotated[
    bool,
    typer.Option(
        "--now",
        help="Kill jobs that end, without the time to save; wait for no interrupted release, "
        "of which no engine or provider may still run.",
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also show old and missing prices, and the critical path.")
]
Fault = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        help=located(
            "With --rehearse: a fault for this run, such as smoke:slow-rank=1 (docs/reference/faults.md)."
        ),
        metavar="FAULT",
    ),
]
Scenario = Annotated[
    Path | None, typer.Option("--faults", help="With --rehearse: a YAML file of faults, capacity and quotas.")
]
PolicyPack = Annotated[
    list[Path] | None,
    typer.Option("--policy-pack", help="A policy pack to enforce, as in Pulumi, such as `policies`."),
]
PolicyPackConfig = Annotated[
    list[Path] | None,
    typer.Option("--policy-pack-config", help="Pulumi's configuration (JSON) of the pack at this position."),
]

Plan = Annotated[
    str,
    typer.Option(
        "--plan",
        metavar="DIGEST",
        help="Deploy only what this preview showed (`plan` of `preview --format json`); else nothing.",
    ),
]


def up(
    context: typer.Context,
    stack: Stack = "",
    *,
    rehearse: Rehearse = False,
    yes: Yes = False,
    fault: Fault = None,
    faults: Scenario = None,
    cluster: Cluster = None,
    provider: Provider = None,
    verbose: Verbose = False,
    now: Now = False,
    policy_pack: PolicyPack = None,
    policy_pack_config: PolicyPackConfig = None,
    plan: Plan = "",
    form: FormatOption = Format.TEXT,
) -> None:
    """Deploy the stack file, then validate the stack with a real training run."""
    from infra.engine.packs import Packs  # noqa: PLC0415
    from trainstack.cli.operations import leaving, several  # noqa: PLC0415
    from trainstack.cli.operations.deployment import open_deployment  # noqa: PLC0415
    from trainstack.cli.operations.session import Kinds  # noqa: PLC0415

    if rehearse:
        extras.require_rehearse("up --rehearse")
    if form is Format.JSON and not yes:
        rule, fix = "asks no question", "Add --yes."
        raise UserError([Problem("--format", "json", rule, fix, "--yes", code="json-needs-yes")])
    packs = Packs.read(policy_pack or (), policy_pack_config or ())
    kinds = Kinds(cluster, provider)
    deployment = open_deployment(
        stack, rehearse=rehearse, faults=fault or (), scenario=faults, kinds=kinds, packs=packs
    )
    if not plan:  # else of the manager, which refuses clusters that are not as its spec says
        clusters = several.clusters_of(deployment.loaded.spec, "up", context.params)
        clusters.before_manager(to_stderr=form is Format.JSON)
        yes = yes or bool(clusters.stacks)
    deployment.up(confirmed=yes, verbose=verbose, now=now, plan=plan, as_json=form is Format.JSON)
    leaving.name_left(deployment.loaded.spec, rehearse=rehearse)


PreviewForm = Annotated[
    str,
    format_option(
        ("text", "json", "markdown"),
        "Output format: text for people, json for programs, markdown for a comment on a pull request.",
    ),
]


AnyProject = Annotated[
    Path | None,
    typer.Option(
        "--project",
        help="Price and judge any Pulumi project, in its rehearsal, or a file of "
        "`pulumi preview --json --show-sames`, instead of a stack of this folder.",
        metavar="DIR|FILE",
        is_eager=True,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", help="With --project DIR: a setting.", metavar="KEY=VALUE"),
]
_DOLLARS = "With --project: exit with 3 above this, and with 4 where that depends on unknown prices."
MaxMonthly = Annotated[
    float | None, typer.Option("--max-monthly", help=f"Expected $ a month. {_DOLLARS}", metavar="USD", min=0)
]
MaxIncrease = Annotated[
    float | None, typer.Option("--max-increase", help=f"More $ a month. {_DOLLARS}", metavar="USD", min=0)
]
AllowUnpriced = Annotated[
    bool, typer.Option("--allow-unpriced", help="With a limit: ignore resources of unknown price.")
]


def preview(
    context: typer.Context,
    stack: Stack = "",
    *,
    project: AnyProject = None,
    config: Settings = None,
    max_monthly: MaxMonthly = None,
    max_increase: MaxIncrease = None,
    allow_unpriced: AllowUnpriced = False,
    rehearse: Rehearse = False,
    faults: Scenario = None,
    cluster: Cluster = None,
    provider: Provider = None,
    policy_pack: PolicyPack = None,
    policy_pack_config: PolicyPackConfig = None,
    form: PreviewForm = "text",
) -> None:
    """Show what `up` would change, and what the stack would cost.

    Text shows a large stack and then its clusters, and json and markdown one stack.
    With --project: the price of each resource, those without a known price, and the verdict of the policies.
    """
    limits = (max_monthly, max_increase, allow_unpriced)
    if project is not None:
        others: dict[str, object] = {"--rehearse": rehearse, "--faults": faults, "--cluster": cluster}
        others |= {"--provider": provider, "--policy-pack": policy_pack, "--format": form == "markdown"}
        _refuse_beside("--project", others)
        _preview_project(project, stack, config or (), limits, as_json=form == "json")
    given = dict(zip(("--max-monthly", "--max-increase", "--allow-unpriced"), limits, strict=True))
    _refuse_without_project({**given, "--config": config})
    from infra.engine.packs import Packs  # noqa: PLC0415
    from trainstack.cli.operations import several  # noqa: PLC0415
    from trainstack.cli.operations.deployment import open_deployment  # noqa: PLC0415
    from trainstack.cli.operations.session import Kinds  # noqa: PLC0415

    packs = Packs.read(policy_pack or (), policy_pack_config or ())
    kinds = Kinds(cluster, provider)
    deployment = open_deployment(stack, rehearse=rehearse, scenario=faults, kinds=kinds, packs=packs)
    deployment.preview(form)  # type: ignore[arg-type]  # validated by the option
    if form == "text":  # a document is of one stack
        several.clusters_of(deployment.loaded.spec, "preview", context.params).after_manager()


def _refuse_beside(option: str, others: Mapping[str, object]) -> None:
    """Raise UserError for options that another one excludes."""
    rule, fix = f"is no option beside {option}", "Leave it out."
    found = [
        Problem(name, None, rule, fix, option, code="option-conflict") for name, one in others.items() if one
    ]
    if found:
        raise UserError(found)


def _refuse_without_project(given: Mapping[str, object]) -> None:
    """Raise UserError for options that need --project."""
    rule, fix = "is an option for --project", "Add --project DIR."
    found = [
        Problem(name, None, rule, fix, code="option-missing")
        for name, one in given.items()
        if one not in (None, False)
    ]
    if found:
        raise UserError(found)


def _preview_project(
    project: Path,
    stack: str,
    settings: Sequence[str],
    limits: tuple[float | None, float | None, bool],
    *,
    as_json: bool,
) -> NoReturn:
    from trainstack.cli.operations import project_preview  # noqa: PLC0415
    from trainstack.prices.report import PriceLimits  # noqa: PLC0415

    raise typer.Exit(project_preview.show(project, stack, settings, PriceLimits(*limits), as_json=as_json))


def refresh(
    stack: Stack = "",
    rehearse: Rehearse = False,
    yes: Yes = False,
    cluster: Cluster = None,
    provider: Provider = None,
) -> None:
    """Adopt into the state what changed outside of it."""
    from trainstack.cli.operations.session import Kinds, open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse, kinds=Kinds(cluster, provider)).refresh(confirmed=yes)


def destroy(
    context: typer.Context,
    stack: Stack = "",
    *,
    rehearse: Rehearse = False,
    yes: Yes = False,
    now: Now = False,
    cluster: Cluster = None,
    provider: Provider = None,
) -> None:
    """Stop all jobs, then delete everything that the stack created; of a large stack also its clusters."""
    from trainstack.cli.operations import leaving, several  # noqa: PLC0415
    from trainstack.cli.operations.session import Kinds, open_session  # noqa: PLC0415

    session = open_session(stack, rehearse=rehearse, kinds=Kinds(cluster, provider))
    leaving.refuse_of_manager(session)
    left = leaving.left_of(session.spec, rehearse=rehearse)
    clusters = several.clusters_of(session.spec, "destroy", context.params, left)
    session.destroy(confirmed=yes or bool(clusters.stacks), now=now)
    clusters.after_manager()


def drift(stack: Stack = "", rehearse: Rehearse = False, form: FormatOption = Format.TEXT) -> None:
    """Show what was changed outside of the program since the last operation; changes nothing."""
    from trainstack.cli.operations.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse).drift(as_json=form is Format.JSON)


def cost(stack: Stack = "", form: FormatOption = Format.TEXT) -> None:
    """Show the price of the stack per month; asks no cloud."""
    from infra import stackspec  # noqa: PLC0415
    from trainstack.cli.operations.preview import print_cost  # noqa: PLC0415

    loaded = stackspec.load_typed(stack)
    print_warnings(loaded.broken)
    try:
        print_cost(loaded, as_json=form is Format.JSON)
    except (AssertionError, TypeError, ValueError, KeyError):
        if not loaded.broken:
            raise
        # What the spec lacks or contradicts leaves no price.
        raise UserError(loaded.broken) from None


AnyStack = Annotated[
    str | None,
    typer.Option("--stack", "-s", help="The stack; default: the only one, in a checkout dev-aws."),
]


def or_default(stack: str | None) -> str:
    """The stack, or the default one, which is named on stderr."""
    if stack is None:
        stack = "dev-aws" if STACKS == CHECKOUT is not None else only()
        typer.echo(f"stack {stack}; another one by --stack", err=True)
    return stack


Key = Annotated[str, typer.Argument(help="A key such as layout.pools[0].machine; without one, all keys.")]


def explain(key: Key = "", stack: AnyStack = None, form: FormatOption = Format.TEXT) -> None:
    """Show a value of the spec with its origin, its reason and its meaning."""
    from infra import stackspec  # noqa: PLC0415
    from trainstack.cli.operations.explained import print_values  # noqa: PLC0415

    stack = or_default(stack)
    loaded = stackspec.load_typed(stack)
    print_warnings(loaded.broken)
    print_values(loaded, stack, list(loaded.explain(key)), as_json=form is Format.JSON)
