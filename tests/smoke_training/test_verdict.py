import re
from typing import Any

import jsonschema
import pytest

from smoke_training import verdict
from smoke_training.model import Cause, Check, Judgement, Verdict
from smoke_training.record import document, termination
from tests.smoke_training.result_schema import RESULT_SCHEMA
from tests.smoke_training.samples import CPU, lines, parsed, plan

WHEN = document.Circumstances(
    run_id="r1", started="2026-11-21T12:00:00+00:00", duration_s=21.5, python="3.11.7", kernel="6.1",
    code_sha256="00", environment_sha256="11",
)  # fmt: skip


def judged(items: list[dict[str, Any]], **plan_changes: Any) -> Judgement:
    return verdict.judge(plan(**plan_changes), parsed(items))


def check(found: Judgement, name: str) -> Check:
    return next(item for item in found.checks if item.id == name)


def changed(kind: str, **changes: Any) -> list[dict[str, Any]]:
    return [{**line, **changes} if line["kind"] == kind else line for line in lines()]


def test_a_healthy_run_passes_and_says_that_gpus_were_not_validated() -> None:
    found = judged(lines())
    assert found.verdict is Verdict.PASS
    assert any("8 GPUs" in note for note in found.notes)


def test_a_slow_rank_fails_by_name_with_figure_and_interval() -> None:
    found = judged(lines(slowdown=1.96))
    assert termination.headline(found).startswith("FAIL scaling_efficiency 0.4")
    facts = (">= 0.80", "rank 1", "node smoke-ab-1", "computes 1.9")
    assert all(fact in termination.headline(found) for fact in facts)
    culprit = check(found, "training.straggler").culprits[0]
    assert (culprit.id, culprit.node, culprit.cause) == ("1", "smoke-ab-1", "not_running")
    assert check(found, "training.straggler").zone == (1.05, 1.15)


def test_slow_communication_fails_without_accusing_a_rank() -> None:
    found = check(judged(lines(communication=2.0)), "training.scaling_efficiency")
    assert (found.status, found.culprits[0].kind) == (Verdict.FAIL, "stack")


def test_slow_communication_on_a_busy_host_is_inconclusive() -> None:
    busy = lines(communication=2.0)
    busy[2]["compute_queue"] = [[0.006] * 80] * 2
    found = check(judged(busy), "training.scaling_efficiency")
    assert found.status is Verdict.INCONCLUSIVE
    assert (found.noise["queue_share"] or 0) > 0.2


def test_waiting_for_a_cpu_held_by_others_is_not_the_ranks_fault() -> None:
    busy = lines(slowdown=1.5)
    own = [value / 1.5 for value in busy[2]["compute"][1]]
    waits = [a - b for a, b in zip(busy[2]["compute"][1], own, strict=True)]
    busy[2]["compute_queue"] = [[0.0] * 80, waits]
    assert check(judged(busy), "training.straggler").status is Verdict.PASS
    # The same waiting under a CPU quota is the rank's own.
    quota = {"throttled_periods": 12, "throttled_seconds": sum(waits)}
    busy[2]["windows"] = [busy[2]["windows"][0], {**busy[2]["windows"][1], **quota}]
    throttled = check(judged(busy), "training.straggler")
    assert (throttled.status, throttled.culprits[0].cause) == (Verdict.FAIL, "quota")


@pytest.mark.parametrize("missing", range(7))
def test_a_missing_measurement_is_never_a_pass(missing: int) -> None:
    left = [line for index, line in enumerate(lines()) if index != missing]
    gone = lines()[missing]["kind"]
    assert judged(left).verdict is (Verdict.PASS if gone in ("reference", "usage") else Verdict.ERROR)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("training", {"compute": [[0.02] * 80]}),
        ("training", {"step": "none"}),
        ("training", {"surprise": 1}),
        ("parity", {"many": []}),
        ("collective", {"sizes": []}),
        ("resume", {"mttr_seconds": None}),
        ("world", {"ranks": []}),
    ],
)
def test_evidence_that_cannot_be_read_or_judged_never_passes(kind: str, changes: dict[str, Any]) -> None:
    assert judged(changed(kind, **changes)).verdict in (Verdict.ERROR, Verdict.FAIL)


def test_fewer_durations_than_sizes_are_named_and_no_index() -> None:
    whole = next(line for line in lines() if line["kind"] == "collective")
    found = judged(changed("collective", seconds=whole["seconds"][:-1]))
    assert found.verdict is Verdict.ERROR
    words = " ".join(item.message for item in found.checks)
    assert f"{len(whole['sizes']) - 1} rows of durations for {len(whole['sizes'])} sizes" in words
    assert "IndexError" not in words


def test_evidence_whose_lines_are_all_there_twice_does_not_pass() -> None:
    found = judged(lines() + lines())
    assert found.verdict is Verdict.ERROR
    assert any("copy" in item.message for item in found.checks)


def test_a_line_cut_in_the_middle_is_an_error_that_names_the_line() -> None:
    found = parsed(lines())
    found.unreadable.append("evidence line 3: ValueError")
    assert verdict.judge(plan(), found).verdict is Verdict.ERROR


def test_a_run_that_did_not_finish_says_why() -> None:
    found = verdict.judge(plan(), parsed([*lines()[:2], {"kind": "ended", "reason": "stopped by SIGTERM"}]))
    assert found.verdict is Verdict.ERROR
    assert found.decisive == check(found, "run.completed")
    assert re.match("ERROR completed .*SIGTERM", termination.headline(found))
    assert "SIGTERM" in check(found, "resume.equality").message


def test_what_was_not_tried_after_a_failure_is_skipped_and_the_failure_stays() -> None:
    stopped = [
        *lines(slowdown=2)[:3],
        {"kind": "stopped_early", "reason": "no scaling"},
        {"kind": "finished"},
    ]
    found = judged(stopped)
    assert found.verdict is Verdict.FAIL
    assert check(found, "resume.equality").status is Verdict.SKIPPED


def test_missing_gpus_fail_unless_cpu_was_asked_for() -> None:
    assert (
        check(judged([*lines(), {**CPU, "device_forced": False}]), "preflight.devices").status is Verdict.FAIL
    )
    assert check(judged(lines()), "preflight.devices").status is Verdict.PASS
    seven = judged([*lines(), {**CPU, "device": "cuda", "devices_found": 7}])
    assert "7 GPUs" in check(seven, "preflight.devices").message


def test_one_rank_alone_is_skipped_not_passed() -> None:
    items = [line for line in lines() if line["kind"] not in ("training", "collective")]
    items[0] |= {"wanted": 1, "ranks": items[0]["ranks"][:1]}
    assert verdict.judge(plan(nodes=1), parsed(items)).verdict is Verdict.SKIPPED


@pytest.mark.parametrize(
    ("phases", "status"),
    [
        (["pairs"], Verdict.SKIPPED), (["rails"], Verdict.SKIPPED), (["gpus"], Verdict.SKIPPED),
        (["gpus", "pairs", "rails"], Verdict.SKIPPED), (["parity", "pairs"], Verdict.PASS),
        (["world"], Verdict.PASS), (None, Verdict.PASS),
    ],
)  # fmt: skip
def test_chosen_phases_of_which_none_could_be_judged_are_skipped_not_passed(
    phases: list[str] | None, status: Verdict
) -> None:
    one_node = [line for line in lines() if line["kind"] not in ("tournament", "rails")]
    items = [*one_node[:-1], {"kind": "pairs_skipped", "reason": "all ranks run on one node"}, one_node[-1]]
    found = judged(items, phases=phases)
    assert found.verdict is status
    if status is Verdict.SKIPPED:
        assert phases and any(word in termination.headline(found) for word in ("one node", "CPU"))


@pytest.mark.parametrize(
    ("kind", "changes", "name"),
    [
        (
            "payload",
            {"wrong": [{"rank": 0, "size": 1024, "elements": 3, "accused": [1], "chunks": [0]}]},
            "collective.payload",
        ),
        ("parity", {"one": [2.0] * 19 + [2.0000001]}, "training.loss_parity"),
        ("parity", {"one": [float("nan")] * 20}, "training.loss_parity"),
        ("resume", {"killed_at_step": 20}, "resume.recovery"),
        ("world", {"wanted": 3}, "preflight.world"),
    ],
)
def test_each_fault_fails_its_own_check(kind: str, changes: dict[str, Any], name: str) -> None:
    found = judged(changed(kind, **changes))
    assert [item.id for item in found.checks if item.status is Verdict.FAIL] == [name]


def test_resume_checks_name_rank_and_entry() -> None:
    items = lines()
    items[6]["ranks"][1] |= {"different": ["step 8: rng/torch"], "torn_accepted": ["no manifest"]}
    found = judged(items)
    assert "step 8: rng/torch" in str(check(found, "resume.equality").measured)
    assert "1: no manifest" in check(found, "checkpoint.torn_refused").message


def resumed(*ranks: dict[str, Any]) -> Check:
    items = lines()
    for rank, changes in zip(items[6]["ranks"], ranks, strict=True):
        rank.update(changes)
    return check(judged(items), "resume.equality")


LOST = {"different": ["step 12: model/head.weight"] * 20, "differing": 903, "losses_equal": 3}


def test_a_rank_whose_own_gradients_differed_first_is_accused_and_not_the_checkpoint() -> None:
    found = resumed({**LOST, "state_step": 12}, {**LOST, "state_step": 12, "gradient_step": 10})
    assert found.status is Verdict.FAIL
    ((kind, name, cause),) = [(item.kind, item.id, item.cause) for item in found.culprits]
    assert (kind, name, cause) == ("rank", "1", Cause.CORRUPTION)
    assert found.culprits[0].node == "smoke-ab-1"
    assert found.message.startswith("1806 of 200")  # all of them, not the first of each rank
    assert "at step 10" in found.message
    assert "intact" in str(found.next_action)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"state_step": 8}, {"state_step": 8, "gradient_step": 8}),  # what was restored differed already
        (
            {"state_step": 12, "gradient_step": 10},
            {"state_step": 12, "gradient_step": 10},
        ),  # no rank is repeatable
        ({"state_step": 12}, {"state_step": 12}),
    ],
)
def test_a_state_that_differed_before_any_gradient_accuses_the_checkpoint(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    found = resumed({**LOST, **first}, {**LOST, **second})
    assert [(item.id, item.cause) for item in found.culprits] == [
        ("0", Cause.STATE_LOST),
        ("1", Cause.STATE_LOST),
    ]
    assert "Do not train" in str(found.next_action)


@pytest.mark.parametrize(
    ("seconds", "status"),
    [(17.9, Verdict.PASS), (61.0, Verdict.INCONCLUSIVE), (121.0, Verdict.FAIL), (0.0, Verdict.ERROR)],
)
def test_a_recovery_takes_no_longer_than_two_minutes(seconds: float, status: Verdict) -> None:
    found = check(judged(changed("resume", mttr_seconds=seconds)), "resume.recovery")
    assert found.status is status
    assert bool(found.next_action) is (status is not Verdict.PASS)
    assert found.zone == (60.0, 120.0)


@pytest.mark.parametrize(
    ("rate", "backend", "status"),
    [(1.0, "nccl", Verdict.PASS), (2.0, "nccl", Verdict.FAIL), (2.0, "gloo", Verdict.SKIPPED)],
)
def test_a_published_figure_judges_only_what_it_is_about(rate: float, backend: str, status: Verdict) -> None:
    items = lines()
    for rank in items[0]["ranks"]:
        rank["backend"] = backend
    figure = {"value": rate, "nodes": 2, "size_bytes": 1 << 20, "source": "a table", "kind": "published"}
    found = check(judged(items, expected_busbw_gb_s=figure), "collective.all_reduce")
    assert found.status is status
    if backend == "gloo":
        assert found.expected is not None
        assert found.expected.kind == "unknown"
        assert "used gloo" in found.message


@pytest.mark.parametrize("items", [lines(), lines(slowdown=2.0), lines()[:2], []])
def test_every_result_satisfies_the_schema_and_every_message_fits(items: list[dict[str, Any]]) -> None:
    evidence = parsed(items)
    found = verdict.judge(plan(), evidence)
    result = document.build(plan(), evidence, found, WHEN)
    jsonschema.Draft202012Validator(RESULT_SCHEMA).validate(result)
    assert len(termination.termination_message(found).encode()) <= 4096
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**result, "verdict": "GOOD"}, RESULT_SCHEMA)


def test_a_null_without_a_reason_breaks_the_schema() -> None:
    evidence = parsed(lines())
    result = document.build(plan(), evidence, verdict.judge(plan(), evidence), WHEN)
    measured = next(item["measured"] for item in result["checks"] if item["measured"])
    measured |= {"value": None, "reason": None}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(result, RESULT_SCHEMA)


def test_what_is_only_reported_gates_nothing() -> None:
    reported = {rule.id for rule in verdict.RULES if not rule.required}
    assert reported == {
        "host.fitness", "training.decomposition", "training.overlap", "training.weak_scaling", "training.mfu",
        "checkpoint.advice",
    }  # fmt: skip
    checks = judged(lines()).checks
    assert {check.id for check in checks if not check.required} >= reported
