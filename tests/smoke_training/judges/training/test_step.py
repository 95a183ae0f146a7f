import dataclasses
import random
from typing import Any

import pytest

from smoke_training.evidence import UndeliveredError
from smoke_training.evidence.training import MachineWindow, Training
from smoke_training.judges.training import causes, fitness
from smoke_training.judges.training import step as judge
from smoke_training.model import Cause, Check, Verdict
from smoke_training.statistics import scaling, straggler
from tests.smoke_training.samples import lines, parsed, plan, series, spins
from tests.smoke_training.statistics.test_straggler import ranks

QUIET = MachineWindow(steal_share=0.0, throttled_periods=0, throttled_seconds=0.0)


def training(
    compute: list[list[float]],
    *,
    queue: list[list[float]] | None = None,
    cpu: list[list[float]] | None = None,
    windows: dict[int, MachineWindow] | None = None,
    spread: float = 0.01,
) -> Training:
    count = len(compute)
    spin = [[0.004 * factor for factor in (1.0, 1 - spread, 1 + spread)] * 10] * count
    return Training(
        compute=_rows(compute), compute_cpu=_rows(cpu or compute),
        compute_queue=_rows(queue) if queue is not None else _rows([[0.0] * len(row) for row in compute]),
        step=_rows([[max(column) * 1.05 for column in zip(*compute, strict=True)]] * count),
        alone=tuple(compute[0][:20]), spin=_rows(spin), spin_queue=None,
        windows=tuple((windows or {}).get(rank, QUIET) for rank in range(count)),
        parameters=100, gradient_bytes=400, tokens_per_step=64,
    )  # fmt: skip


def _rows(rows: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in rows)


def slow(factor: float, *, count: int = 4, victim: int = 2, seed: int = 1) -> list[list[float]]:
    return ranks(count, 160, 0.03, 0, slow={victim: factor}, seed=seed)


def checked(items: list[dict[str, Any]], name: str = "straggler") -> Check:
    found = getattr(judge, name)(plan(), parsed(items))
    assert isinstance(found, Check)
    return found


def changed(**training_changes: Any) -> list[dict[str, Any]]:
    return [
        {**line, **training_changes} if line["kind"] == "training" else line for line in lines(slowdown=1.5)
    ]


def windows(**second: Any) -> list[dict[str, Any]]:
    plain = spins()["windows"]
    return [plain[0], {**plain[1], **second}]


CAPPED = MachineWindow(gpu_mhz=1700.0, clock_reasons=("sw_power_cap",))


def cause(found: Training, victim: int = 2) -> Cause:
    accused = straggler.judge(scaling.own_compute(found), 1.15).accused
    assert [score.rank for score in accused] == [victim]
    return causes.of_rank(found, accused[0]).cause


@pytest.mark.parametrize(
    ("cpu", "windows", "expected"),
    [
        (None, {}, Cause.SLOW_COMPUTE),  # CPU time grows as well
        (1.0, {}, Cause.NOT_RUNNING),  # neither ran nor waited
        (1.0, {2: MachineWindow(throttled_periods=40, throttled_seconds=0.9)}, Cause.QUOTA),
        (None, {2: MachineWindow(throttled_periods=2, throttled_seconds=0.004)}, Cause.SLOW_COMPUTE),
        (None, dict.fromkeys(range(4), CAPPED), Cause.SLOW_COMPUTE),  # normal for healthy GPUs
        (None, {2: MachineWindow(gpu_mhz=100.0)}, Cause.SLOW_COMPUTE),  # the peers' clocks are unknown
    ],
)
def test_the_cause_of_a_slow_rank(
    cpu: float | None, windows: dict[int, MachineWindow], expected: Cause
) -> None:
    times = None if cpu is None else slow(cpu, seed=7)
    assert cause(training(slow(1.4), cpu=times, windows=windows)) is expected


@pytest.mark.parametrize(
    "window",
    [
        MachineWindow(gpu_mhz=1100.0),
        MachineWindow(cpu_mhz=1500.0, gpu_mhz=1980.0),
        MachineWindow(gpu_mhz=1980.0, cpu_mhz=3000.0, clock_reasons=("hw_thermal_slowdown",)),
    ],
)
def test_a_clock_below_its_peers_or_held_down_is_the_cause(window: MachineWindow) -> None:
    peers = {rank: MachineWindow(gpu_mhz=1980.0, cpu_mhz=3000.0) for rank in (0, 1, 3)}
    assert cause(training(slow(1.4), windows={**peers, 2: window})) is Cause.CLOCK


@pytest.mark.parametrize("quota_seconds", [0.0, 0.3, 1.0])
def test_waiting_is_the_ranks_own_as_far_as_its_quota_caused_it(quota_seconds: float) -> None:
    walls, waits = [[0.02] * 100, [0.03] * 100], [[0.0] * 100, [0.01] * 100]
    window = MachineWindow(throttled_periods=int(quota_seconds * 100), throttled_seconds=quota_seconds)
    own = scaling.own_compute(training(walls, queue=waits, windows={1: window}))
    assert sum(own[1]) == pytest.approx(2.0 + quota_seconds)
    assert own[0] == [0.02] * 100


def test_a_false_alarm_of_a_noisy_host_is_inconclusive_with_its_number() -> None:
    noisy = [{**line, **spins(0.3)} if line["kind"] == "training" else line for line in changed()]
    for line in noisy:
        if line["kind"] == "training":
            line["compute_cpu"] = line["compute"]
    found = checked(noisy)
    assert found.status is Verdict.INCONCLUSIVE
    assert found.culprits[0].cause is Cause.NOISY_HOST
    assert "30%" in found.message
    assert found.noise["null_mad_rel"] == pytest.approx(0.3, abs=0.01)
    assert checked(noisy, "scaling_efficiency").status is Verdict.INCONCLUSIVE


def test_noise_of_the_cpus_excuses_no_accelerator() -> None:
    noisy = [{**line, **spins(0.3)} if line["kind"] == "training" else line for line in changed()]
    for line in noisy:
        if line["kind"] == "training":
            line.update(backend="nccl", compute_cpu=line["compute"], compute_queue=[[0.006] * 80] * 2)
    found = checked(noisy)
    assert (found.status, found.culprits[0].cause) == (Verdict.FAIL, Cause.SLOW_COMPUTE)
    assert checked(noisy, "scaling_efficiency").status is Verdict.FAIL
    assert fit(noisy).status is Verdict.PASS


def test_slow_communication_of_accelerators_is_a_fault_on_a_busy_host_too() -> None:
    busy = lines(communication=2.0)
    busy[2].update(backend="nccl", compute_queue=[[0.006] * 80] * 2)
    assert checked(busy, "scaling_efficiency").status is Verdict.FAIL


def test_a_stopped_rank_is_found_on_a_noisy_host_too() -> None:
    noisy = [{**line, **spins(0.3)} if line["kind"] == "training" else line for line in changed()]
    found = checked(noisy)
    assert (found.status, found.culprits[0].cause) == (Verdict.FAIL, Cause.NOT_RUNNING)


@pytest.mark.parametrize("changes", [{"compute_queue": None}, {"windows": windows(steal_share=0.2)}])
def test_but_not_where_another_process_may_have_had_the_cpu(changes: dict[str, Any]) -> None:
    noisy = [{**line, **spins(0.3)} if line["kind"] == "training" else line for line in changed()]
    for line in noisy:
        if line["kind"] == "training":
            line.update(changes)
    assert checked(noisy).status is Verdict.INCONCLUSIVE


def test_a_quota_fails_on_a_noisy_host_and_says_what_to_do() -> None:
    held = windows(throttled_periods=50, throttled_seconds=0.7)
    found = checked(changed(**{**spins(0.3), "windows": held}))
    assert (found.status, found.culprits[0].cause) == (Verdict.FAIL, Cause.QUOTA)
    assert "CPU limit" in (found.next_action or "")
    assert any("for 0.70 s" in item for item in found.culprits[0].evidence)


def test_a_rank_that_becomes_slow_in_mid_run_is_drift_and_no_pass() -> None:
    compute = ranks(4, 200, 0.02, 0, slow={}, seed=3)
    compute[1] = [value * (1.25 if index >= 160 else 1.0) for index, value in enumerate(compute[1])]
    found = training(compute)
    averaged = straggler.judge(scaling.own_compute(found), 1.15)  # over the whole run
    assert averaged.decision is Verdict.PASS
    drift = next(item for item in scaling.drifts(found) if item.rank == 1)
    assert drift.iteration == 160
    assert drift.ratio == pytest.approx(1.25, rel=0.03)
    assert scaling.slowdown_since(found, 1, 160) == pytest.approx(1.25, rel=0.03)
    assert judge.statuses(plan(), found)[1] is Verdict.INCONCLUSIVE


def test_a_gang_that_slows_down_together_is_reported_and_passes() -> None:
    dice = random.Random(4)
    rows = [[0.02 * dice.lognormvariate(0, 0.02) for _ in range(80)] for _ in range(2)]
    rows = [[value * (1.3 if index >= 40 else 1) for index, value in enumerate(row)] for row in rows]
    items = [
        {**line, "compute": rows, "compute_cpu": rows, "step": rows} if line["kind"] == "training" else line
        for line in lines()
    ]
    found = checked(items)
    assert found.status is Verdict.PASS
    assert found.measured is not None
    drift = found.measured.detail["drift"]
    assert isinstance(drift, list)
    assert [(item["rank"], item["iteration"]) for item in drift] == [(None, 40)]
    assert "ranks took 1.3" in found.message


def test_the_result_states_at_what_risk_it_was_decided() -> None:
    found = checked(lines())
    assert found.measured is not None
    assert found.measured.detail["pass_alpha"] == 1e-3
    assert 0 < float(str(found.measured.detail["fail_alpha"])) < 1e-6


def fit(items: list[dict[str, Any]]) -> Check:
    return fitness.fitness(plan(), parsed(items))


def test_quiet_machines_are_fit() -> None:
    found = fit(lines())
    assert found is not None
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert found.measured.value == pytest.approx(0.01, abs=1e-3)


@pytest.mark.parametrize("kind", ["fitness", "training"])
def test_noise_that_cost_no_figure_names_no_node(kind: str) -> None:
    noisy = [{**line, **spins(0.25)} if line["kind"] == kind else line for line in lines()]
    found = fit(noisy)
    assert found is not None
    assert (found.status, found.culprits, found.next_action) == (Verdict.PASS, (), None)
    assert "by 25%" in found.message
    assert found.message.endswith("no verdict")


def test_a_noisy_machine_is_named_where_a_figure_suffered() -> None:
    noisy = [{**line, **spins(0.25)} if line["kind"] == "training" else line for line in changed()]
    for line in noisy:
        if line["kind"] == "training":
            line["compute_cpu"] = line["compute"]
    found = fit(noisy)
    assert found is not None
    assert found.status is Verdict.INCONCLUSIVE
    assert found.message.startswith("noisy_host: ")
    assert {culprit.cause for culprit in found.culprits} == {Cause.NOISY_HOST}
    assert {(culprit.kind, culprit.node) for culprit in found.culprits} == {
        ("node", "smoke-ab-0"),
        ("node", "smoke-ab-1"),
    }


def test_fitness_without_a_measurement_is_no_pass() -> None:
    with pytest.raises(UndeliveredError):
        fit([line for line in lines() if line["kind"] != "fitness"])
    empty = [
        {**line, "spin": [[], []], "spin_queue": None} if line["kind"] == "fitness" else line
        for line in lines()
    ]
    left = [line for line in empty if line["kind"] != "training"]
    found = fit(left)
    assert found is not None
    assert found.status is Verdict.ERROR


def test_healthy_noise_never_fails_whatever_the_ladder_says() -> None:
    for seed in range(60):
        compute = ranks(4, 120, 0.1, 0.005, slow={}, seed=seed)
        found = training(compute)
        for spread in (0.01, 0.4):
            status = judge.statuses(plan(), dataclasses.replace(found, spin=spin_rows(spread)))[1]
            assert status is not Verdict.FAIL


def spin_rows(spread: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(0.004 * f for f in (1.0, 1 - spread, 1 + spread)) for _ in range(4))


def test_series_of_the_samples_are_what_they_say() -> None:
    assert sum(series(2.0)) == pytest.approx(2 * sum(series(1.0)))


# GB/s of algorithm bandwidth at 32 MiB on p5.48xlarge by nodes: crazyguitar/aws-gpu-communication-benchmark,
# data/nccl_*.csv at fd167f97. Efficiency: the lower of two overlap models with 16 of 25 ms backward; 64 nodes
# and their rate continue the rows.
P5 = {2: (78.6, 0.95), 4: (49.2, 0.86), 8: (44.1, 0.78), 16: (37.7, 0.70), 32: (33.3, 0.64), 64: (29.5, 0.58)}
GRADIENTS = 1_073_000_000


def on_p5(rate_gb_s: float, efficiency: float, sweep: bool = True) -> Check:
    """536 M parameters in bfloat16, 25 ms of compute, over an all-reduce of a rate."""
    items = lines(communication=1 / efficiency)
    scaled = {key: [[value * 1.25 for value in row] for row in items[2][key]] for key in ("compute", "step")}
    items[2].update(scaled, backend="nccl", gradient_bytes=GRADIENTS, parameters=GRADIENTS // 2)
    sizes = [1 << power for power in range(20, 31, 2)]
    seconds = [[max(60e-6, size / rate_gb_s / 1e9)] * 25 for size in sizes]
    items[1].update(sizes=sizes, seconds=seconds)
    return checked(items if sweep else [items[0], *items[2:6]], "scaling_efficiency")


@pytest.mark.parametrize("nodes", P5)
def test_a_healthy_p5_passes_at_every_size_and_without_overlap_it_fails(nodes: int) -> None:
    rate, efficiency = P5[nodes]
    found = on_p5(rate, efficiency)
    assert found.status is Verdict.PASS, found.message
    assert found.expected is not None
    assert found.expected.kind == "derived"
    compute, exchange = 25.0, GRADIENTS / rate / 1e6
    lost = on_p5(rate, 0.9 * compute / (compute + exchange / 0.9))
    assert (lost.status, lost.culprits[0].cause) == (Verdict.FAIL, Cause.EXPOSED_COMMUNICATION)


def test_two_nodes_with_a_fast_fabric_do_not_pass_with_the_efficiency_of_many() -> None:
    assert on_p5(78.6, 0.70).status is Verdict.INCONCLUSIVE
    assert on_p5(78.6, 0.50).status is Verdict.FAIL


def test_without_a_measured_all_reduce_no_fault_of_accelerators_is_proven() -> None:
    found = on_p5(78.6, 0.5, sweep=False)
    assert found.status is Verdict.INCONCLUSIVE
    assert "no all-reduce was measured" in found.message
