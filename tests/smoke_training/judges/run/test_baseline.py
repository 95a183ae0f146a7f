import dataclasses
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training import verdict
from smoke_training.judges.run import baseline as judge
from smoke_training.model import Check, Expected, Measured, Verdict
from smoke_training.reader import DocumentError
from smoke_training.record import references as record_references
from smoke_training.statistics import baseline
from smoke_training.statistics.baseline import Figure, Fingerprint, RunBaseline
from tests.smoke_training.samples import lines, parsed, plan

WIRE = Fingerprint(
    instance_type="p4d.24xlarge", nodes=2, gpus_per_node=8, ranks=16, cpus_per_node=96, image="i@sha256:0",
    backend="nccl", nccl="2.21.5", driver=None, sizes=(1024, 1 << 20), declared_gbit_s=400.0,
)  # fmt: skip
SHARED = dataclasses.replace(WIRE, backend="gloo", nccl=None, declared_gbit_s=None)
BUSBW = "collective.all_reduce"


def figure(value: float, half: float = 0.002, unit: str = "GB/s") -> Figure:
    return Figure(value=value, ci=(value * (1 - half), value * (1 + half)), n=20, unit=unit)


def ratio(
    new: Figure, old: Figure, name: str = BUSBW, where: Fingerprint = WIRE, history: tuple[float, ...] = ()
) -> baseline.Comparison:
    return baseline.compare_one(name, old, new, history, where)


@given(st.floats(0.01, 1e4), st.floats(0.3, 3), st.floats(0.0001, 0.2))
def test_a_ratio_is_of_performance_whatever_the_direction(old: float, factor: float, half: float) -> None:
    rate = ratio(figure(old * factor, half), figure(old, half))
    time = ratio(figure(old / factor, half, "s"), figure(old, half, "s"), "checkpoint.commit")
    assert rate.ratio == pytest.approx(time.ratio)
    assert rate.ci[0] <= rate.ratio <= rate.ci[1]
    assert rate.significant == (not rate.ci[0] <= 1 <= rate.ci[1])


@pytest.mark.parametrize(("factor", "regressed"), [(1.0, False), (0.98, False), (0.95, True), (1.2, False)])
def test_a_wire_regresses_only_when_the_whole_interval_is_below_the_limit(
    factor: float, regressed: bool
) -> None:
    assert ratio(figure(100 * factor), figure(100)).regressed is regressed


def test_a_wide_interval_regresses_nothing_and_says_what_it_could_have_found() -> None:
    vague = ratio(figure(90, 0.08), figure(100, 0.08))
    assert vague.regressed is False
    assert vague.detectable is not None
    assert vague.detectable > 0.2
    sharp = ratio(figure(90, 0.0005), figure(100, 0.0005))
    assert sharp.detectable is not None
    assert 0.03 < sharp.detectable < 0.035


def test_the_promised_sensitivity_holds_on_a_shaped_wire_and_on_a_real_fabric() -> None:
    """Noise 0.1 % on a shaped wire, 0.5 % on a fabric; medians of 20 repetitions with their interval."""
    dice = random.Random(5)
    for noise, loss in ((0.001, 0.035), (0.005, 0.05)):
        found = [_drawn(dice, noise, loss) for _ in range(400)]
        assert sum(found) >= 0.99 * 400, (noise, loss, sum(found))
        assert sum(_drawn(dice, noise, 0.0) for _ in range(400)) == 0


def _drawn(dice: random.Random, noise: float, loss: float) -> bool:
    error = 1.2533 * noise / math.sqrt(20)  # standard error of a normal median
    old, new = (level * math.exp(dice.gauss(0, error)) for level in (100.0, 100.0 * (1 - loss)))
    return ratio(figure(new, 1.96 * error), figure(old, 1.96 * error)).regressed is True


def test_figures_of_shared_machines_claim_nothing_before_their_spread_is_known() -> None:
    once = ratio(figure(50), figure(100), "storage.write", SHARED, (100.0, 90.0))
    assert once.regressed is None
    assert "2 of 8" in str(once.reason)
    loopback = ratio(figure(50), figure(100), BUSBW, SHARED)
    assert loopback.regressed is None


def test_a_history_widens_the_interval_by_what_runs_differ() -> None:
    quiet = (100.0, 101, 99, 100, 100.5, 99.5, 100, 100)
    loud = (100.0, 140, 70, 120, 80, 110, 95, 105)
    assert ratio(figure(80), figure(100), "storage.write", SHARED, quiet).regressed is True
    assert ratio(figure(80), figure(100), "storage.write", SHARED, loud).regressed is False


def test_noisy_runs_of_a_shared_machine_raise_no_false_alarm() -> None:
    dice = random.Random(7)
    alarms = 0
    for _ in range(3000):
        values = tuple(100 * math.exp(dice.gauss(0, 0.15)) for _ in range(9))
        new, *old = values
        alarms += (
            ratio(figure(new, 0.02), figure(old[0], 0.02), "storage.write", SHARED, tuple(old)).regressed
            is True
        )
    assert alarms <= 3  # nominal: 1e-4 each, and the 3 % margin on top


def test_a_slide_in_small_steps_is_seen_against_the_history() -> None:
    old = tuple(100 * 0.985**-age for age in range(19))  # each accepted run 1.5 % below the one before
    slid = ratio(figure(100 * 0.985, 0.001), figure(100, 0.001), history=old)
    assert ratio(figure(100 * 0.985, 0.001), figure(100, 0.001)).regressed is False
    assert slid.ratio < 0.9


@given(st.sampled_from([f.name for f in dataclasses.fields(Fingerprint)]))
def test_any_other_fingerprint_does_not_apply_and_is_named(name: str) -> None:
    changed: Any = {"sizes": (8,), "nccl": None, "driver": "570", "declared_gbit_s": 1.0}.get(name, 77)
    other = dataclasses.replace(WIRE, **{name: changed})
    assert other.digest() != WIRE.digest()
    (difference,) = baseline.differences(WIRE, other)
    assert difference.startswith(f"{name}: ")
    assert baseline.differences(WIRE, WIRE) == ()


def check(name: str, value: float, unit: str, half: float = 0.002) -> Check:
    figure_ = figure(value, half, unit)
    measured = Measured(value=value, unit=unit, n=20, estimator="median", ci=(figure_.ci[0], figure_.ci[1]))
    return Check(id=name, status=Verdict.PASS, required=True, message="m", measured=measured)


CHECKS = [
    check(BUSBW, 1.0, "GB/s"),
    check("training.scaling_efficiency", 0.95, "ratio"),
    check("checkpoint.commit", 0.01, "s"),
    check("resume.recovery", 6.5, "s"),
]


def document(factor: float = 1.0, **changes: Any) -> dict[str, Any]:
    """The baseline that eight runs with these checks leave, their performance scaled by `factor`."""
    own = judge.fingerprint(plan(), parsed(lines()))
    assert own is not None
    values = {}
    for name, f in judge.figures(CHECKS).items():
        scale = 1 / factor if f.unit == "s" else factor
        values[name] = figure(f.value * scale, 0.002, f.unit)
    made = RunBaseline(
        stack="dev-aws", run_id="old", recorded="2026-11-20", fingerprint=own, figures=values,
        history={name: [v.value * (1 + 0.001 * i) for i in range(8)] for name, v in values.items()},
    )  # fmt: skip
    return {**baseline.render(made), **changes}


def test_a_document_survives_its_own_reading() -> None:
    text = json.loads(json.dumps(document()))
    assert baseline.render(baseline.parse(text)) == text


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ([], "must be an object"),
        ({"schema": "trainstack.smoke/1"}, "trainstack.smoke-baseline/1"),
        (document(figures={}), "nothing can be compared"),
        (document(figures={BUSBW: {"value": -1, "ci": [1, 2], "n": 3, "unit": "GB/s"}}), "positive number"),
        (document(figures={BUSBW: {"value": 9, "ci": [1, 2], "n": 3, "unit": "GB/s"}}), "must hold the"),
        (document(history={BUSBW: [0.0]}), f"history.{BUSBW}"),
        (document(fingerprint={"nodes": 2}), "instance_type"),
        (document(surprise=1), "surprise"),
    ],
)  # fmt: skip
def test_an_unusable_document_is_refused_with_its_faults(broken: Any, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        baseline.parse(broken)


def test_a_plan_with_an_unusable_baseline_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"must be .trainstack\.smoke-baseline"):
        plan(baseline={"schema": "x"})


def judged(
    document_: dict[str, Any] | None, items: tuple[dict[str, Any], ...] = (), is_: Verdict = Verdict.PASS
) -> Check:
    return judge.regression(plan(baseline=document_), parsed([*lines(), *items]), CHECKS, is_)


def test_a_run_like_its_baseline_has_not_regressed() -> None:
    found = judged(document())
    assert (found.status, found.required) == (Verdict.PASS, False)
    assert found.expected is not None
    assert "old of 2026-11-20" in found.expected.source
    assert found.measured is not None
    compared = [item["id"] for item in found.measured.detail["figures"]]  # type: ignore[attr-defined]
    assert compared == [BUSBW, "training.scaling_efficiency", "checkpoint.commit"]


def test_a_regression_keeps_the_pass_and_names_its_figures() -> None:
    found = judged(document(factor=1.5))
    assert (found.status, found.required) == (Verdict.FAIL, False)
    assert found.measured is not None
    assert found.measured.detail["regressed"] == [BUSBW, "training.scaling_efficiency", "checkpoint.commit"]
    assert found.measured.value == pytest.approx(1 / 1.5, rel=0.01)
    assert "0.006667 (0.669x" in found.message
    assert "smoke accept" in str(found.next_action)


def test_a_faster_run_has_not_regressed() -> None:
    assert judged(document(factor=0.5)).status is Verdict.PASS


@pytest.mark.parametrize("is_", [v for v in Verdict if v is not Verdict.PASS])
def test_only_a_run_that_passed_is_compared(is_: Verdict) -> None:
    found = judged(document(factor=3), is_=is_)
    assert found.status is Verdict.SKIPPED
    assert f"The run is {is_}" in found.message


def test_another_fingerprint_does_not_apply_and_the_reason_is_said() -> None:
    other = document()
    other["fingerprint"] |= {"image": "example/training@sha256:ff"}
    assert "example/training@sha256:00, the baseline" in judged(other).message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"document": None, "source": "MLflow", "reason": "tracking unreachable: no"}, "unreachable"),
        ({"document": {"schema": "x"}, "source": "MLflow", "reason": None}, "cannot be read"),
        (None, "none was looked up"),
    ],
)
def test_without_a_usable_baseline_the_reason_is_said(line: dict[str, Any] | None, words: str) -> None:
    found = judged(None, ({"kind": "baseline", **line},) if line else ())
    assert found.status is Verdict.SKIPPED
    assert words in found.message


def test_a_looked_up_baseline_is_used_like_the_plans() -> None:
    line = {"kind": "baseline", "document": document(1.5), "source": "MLflow run x", "reason": None}
    found = judged(None, (line,))
    assert found.status is Verdict.FAIL
    assert found.expected is not None
    assert "MLflow run x" in found.expected.source


@pytest.mark.parametrize("items", [lines(), lines(slowdown=2.0), lines()[:3], []])
def test_no_baseline_changes_any_verdict(items: list[dict[str, Any]]) -> None:
    without = verdict.judge(plan(), parsed(items))
    having = verdict.judge(plan(baseline=document(factor=3)), parsed(items))
    assert without.verdict is having.verdict
    assert having.checks[-1].id == judge.ID
    assert [c for c in without.checks if c.id != judge.ID] == [c for c in having.checks if c.id != judge.ID]


@pytest.mark.parametrize("key", ["queue_share", "starved_share", "steal_share"])
def test_a_figure_that_a_neighbour_disturbed_is_left_out(key: str) -> None:
    noisy = [dataclasses.replace(CHECKS[0], noise={key: 0.6}), *CHECKS[1:]]
    assert BUSBW not in judge.figures(noisy)
    found = judge.regression(plan(baseline=document(factor=1.5)), parsed(lines()), noisy, Verdict.PASS)
    assert found.measured is not None
    assert BUSBW not in found.measured.detail["regressed"]  # type: ignore[operator]
    assert found.measured.detail["left_out_as_disturbed"] == [BUSBW]
    alone = judge.regression(plan(baseline=document()), parsed(lines()), noisy[:1], Verdict.PASS)
    assert alone.status is Verdict.SKIPPED
    assert f": {BUSBW}" in alone.message
    calm = [dataclasses.replace(CHECKS[0], noise={key: 0.01}), *CHECKS[1:]]
    assert BUSBW in judge.figures(calm)


def references(**judged_: Any) -> dict[str, dict[str, Any]]:
    own = judged(document(factor=1.0))
    measured = Measured(value=1.0, unit="GB/s", n=9, estimator="median", detail=judged_.pop("detail", {}))
    one = Check(id=BUSBW, status=Verdict.PASS, required=True, message="m", measured=measured, **judged_)
    return {str(item["kind"]): item for item in record_references.of(one, [one, own])}


def test_a_figure_shows_all_four_references_and_why_one_is_missing() -> None:
    bounds = [
        {"algorithm": "ring", "busbw_gb_s": 50.0, "limit": "the network", "complete": True},
        {"algorithm": "tree", "busbw_gb_s": 93.8, "limit": "the network", "complete": False},
    ]
    published = Expected(value=77.4, kind="published", source="a table", floor=69.7)
    found = references(expected=published, detail={"bounds": bounds})
    assert [found[kind]["value"] for kind in ("bound", "declared", "published", "baseline")] == [
        93.8, None, 77.4, 1.0,
    ]  # fmt: skip
    assert "tree over" in found["bound"]["source"]
    assert "run old" in found["baseline"]["source"]
    assert "run plan" in found["declared"]["reason"]
    nothing = references(
        expected=Expected(value=None, kind="unknown", source="none", reason="not in the table")
    )
    assert "table" in nothing["published"]["reason"]
    assert record_references.of(check("resume.recovery", 6.5, "s"), []) == []
