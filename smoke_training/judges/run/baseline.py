"""Judge of a run against the stack's own accepted runs (pure). Never gates: a regression is not a failure.

The absolute verdict comes first and does not change. Only a run that passed is compared: the figures of a
failed or undecided run are no evidence of a slow decline.
"""

from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.fabric import Collective
from smoke_training.evidence.links import NcclLog, Traffic
from smoke_training.evidence.world import JoinedNodes, Lookup, World
from smoke_training.model import Check, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import baseline as baselines
from smoke_training.statistics.baseline import LIMIT, Acceptance, Comparison, Figure, Fingerprint, RunBaseline

ID = "baseline.regression"
ASK = (
    "Compare with the baseline's run (`smoke compare`): what changed under {}? If the new figure is the new "
    "normal, accept it: trainstack smoke accept RESULT --because ..."
)
# Shares of the measured time without the CPU it needed, above which a figure is disturbed. Quiet
# hosts stay below 0.01. A shaped wire kept its rate within 0.5 % while its ends waited for 0.31 .. 0.44 of
# their time (0.1 Gb/s, two nodes on two busy cores).
DISTURBED = {"queue_share": 0.1, "steal_share": 0.05, "steal": 0.05, "starved_share": 0.5}


def fingerprint(plan: Plan, found: Evidence) -> Fingerprint | None:
    """Return the setting of this run's figures; None when the ranks did not report their software."""
    world, nodes = found.of(World), found.of(JoinedNodes)
    if world is None or not world.ranks:
        return None
    first = world.ranks[0]
    sizes = {size for sweep in found.all_of(Collective) for size in sweep.sizes}
    log = found.of(NcclLog)
    return Fingerprint(
        instance_type=plan.instance_type,
        nodes=plan.nodes,
        gpus_per_node=plan.gpus_per_node,
        ranks=len(world.ranks),
        cpus_per_node=first.cpus,
        image=plan.image,
        backend=first.backend,
        nccl=first.nccl,
        driver=nodes.joined[0].driver if nodes is not None and nodes.joined else None,
        sizes=tuple(sorted(sizes)),
        declared_gbit_s=plan.network_gbit_s or plan.rail_gbit_s,
        fabric=plan.fabric,
        gpu=first.device,
        kernel=first.kernel,
        plugins=None if log is None else ", ".join(log.plugins) or None,
        mnnvl=None if log is None else log.mnnvl,
        environment=_settings(found.of(Traffic)),
    )


def _settings(traffic: Traffic | None) -> str | None:
    """Return the settings of communication of node 0, without those that name a run, a node or a log."""
    values = traffic.nodes[0].environment if traffic is not None and traffic.nodes else {}
    passing = {"MASTER_ADDR", "CUDA_VISIBLE_DEVICES", "NCCL_HOSTID"}
    kept = {k: v for k, v in values.items() if k not in passing and not k.startswith("NCCL_DEBUG")}
    return " ".join(f"{name}={kept[name]}" for name in sorted(kept)) or None


def acceptance(plan: Plan, found: Evidence) -> Acceptance | None:
    """Return the acceptance of the baseline of this run's fingerprint; None without one."""
    try:
        baseline, _ = _baseline(plan, found)
    except (LookupError, ValueError, TypeError):
        return None
    own = fingerprint(plan, found)
    alike = own is not None and not baselines.differences(own, baseline.fingerprint)
    return baseline.acceptance if alike else None


def figures(checks: Sequence[Check]) -> dict[str, Figure]:
    """Return the comparable figures of a run by check id; disturbed ones are excluded."""
    found = {}
    for check in checks:
        if check.measured is None or check.status not in (Verdict.PASS, Verdict.SKIPPED) or disturbed(check):
            continue
        m = check.measured
        figure = baselines.usable(check.id, m.value, m.ci, m.n, m.unit)
        if figure is not None:
            found[check.id] = figure
    return found


def disturbed(check: Check) -> bool:
    """Report whether the ranks waited for CPUs."""
    return any((check.noise.get(key) or 0.0) > most for key, most in DISTURBED.items())


def left_out(checks: Sequence[Check]) -> list[str]:
    """Return the ids of the checks whose figures were disturbed."""
    return [check.id for check in checks if check.id in baselines.BETTER and disturbed(check)]


def regression(plan: Plan, found: Evidence, checks: Sequence[Check], verdict: Verdict) -> Check:
    """The check `baseline.regression`: PASS, FAIL with the list of figures, or SKIPPED with the reason."""
    try:
        if verdict is not Verdict.PASS:
            raise LookupError(f"The run is {verdict}: only a run that passed is compared with earlier ones.")
        baseline, source = _baseline(plan, found)
        compared = _compared(plan, found, checks, baseline, source)
    except LookupError as why:
        return Check.skipped(str(why.args[0]), ID)
    except (ValueError, TypeError, ArithmeticError) as error:
        # A malformed baseline of an old run must not affect this run's verdict.
        return Check.skipped(f"No baseline: it cannot be read: {error}", ID)
    return _judged(compared, source, left_out(checks))


def _compared(
    plan: Plan, found: Evidence, checks: Sequence[Check], baseline: RunBaseline, source: str
) -> tuple[Comparison, ...]:
    """Compare every figure of both; LookupError with the reason where the baseline does not apply."""
    own = fingerprint(plan, found)
    if own is None:
        raise LookupError("The ranks did not report their software.")
    unlike = baselines.differences(own, baseline.fingerprint)
    if unlike:
        raise LookupError(f"The baseline does not apply ({source}): {'; '.join(unlike)}.")
    compared = baselines.compare(baseline, figures(checks))
    if not compared:
        noisy = ", ".join(left_out(checks))
        why = f"; left out because the ranks waited for CPUs: {noisy}" if noisy else ""
        raise LookupError(f"No figure of this run has a counterpart in the baseline ({source}){why}.")
    return compared


def _baseline(plan: Plan, found: Evidence) -> tuple[RunBaseline, str]:
    """The baseline and its source, the plan's own first; LookupError with the reason if there is none."""
    document, source = plan.baseline, "named by the run plan"
    if document is None:
        looked_up = found.of(Lookup)
        if looked_up is None:
            raise LookupError("No baseline: the plan has none and none was looked up.")
        document, source = looked_up.document, looked_up.source
        if document is None:
            raise LookupError(f"No baseline: {looked_up.reason or 'none was found'}.")
    baseline = baselines.parse(document)
    return baseline, f"run {baseline.run_id} of {baseline.recorded}, {source}"


def _judged(compared: Sequence[Comparison], source: str, disturbed_ids: list[str]) -> Check:
    claimed = [item for item in compared if item.regressed is not None]
    worse = [item for item in claimed if item.regressed]
    shown = min(worse or claimed or compared, key=lambda item: item.ratio)
    status = Verdict.FAIL if worse else Verdict.PASS if claimed else Verdict.SKIPPED
    return Check(
        id=ID,
        status=status,
        required=False,
        measured=Measured(
            value=shown.ratio,
            unit="x of the baseline",
            n=shown.runs,
            estimator=f"performance of {shown.id} over the baseline's; worst of {len(compared)} figures",
            ci=shown.ci,
            detail={
                "figures": [_detail(item) for item in compared],
                "regressed": [item.id for item in worse],
                "left_out_as_disturbed": disturbed_ids,
            },
        ),
        expected=Expected(value=1.0, kind="baseline", source=source, floor=LIMIT),
        message=_message(worse, claimed, compared),
        next_action=ASK.format(worse[0].id) if worse else None,
    )


def _message(
    worse: Sequence[Comparison], claimed: Sequence[Comparison], compared: Sequence[Comparison]
) -> str:
    if worse:
        return "worse than this stack's accepted runs: " + "; ".join(
            f"{w.id} {w.new.value:.4g} {w.unit} after {w.old.value:.4g} "
            f"({w.ratio:.3f}x, 95 % interval {w.ci[0]:.3f} .. {w.ci[1]:.3f})"
            for w in worse
        )
    if not claimed:
        return f"{len(compared)} figures compared, none judged: {compared[0].reason}"
    return f"none of {len(claimed)} judged figures is below {LIMIT}x of this stack's accepted runs" + (
        f"; {len(compared) - len(claimed)} more not judged" if len(compared) > len(claimed) else ""
    )


def _detail(item: Comparison) -> dict[str, object]:
    same = ("id", "unit", "better", "ratio", "runs", "significant", "regressed", "reason")
    return {
        **{name: getattr(item, name) for name in same},
        "value": item.new.value,
        "ci": list(item.new.ci),
        "baseline": item.old.value,
        "baseline_ci": list(item.old.ci),
        "ratio_ci": list(item.ci),
        "detectable_loss": item.detectable,
    }
