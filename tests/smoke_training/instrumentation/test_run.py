import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import smoke_training
from smoke_training import instrumentation
from smoke_training.instrumentation import Record, metrics
from smoke_training.statistics.peers import PeerComparison

PAUSE = 0.02


def test_the_class_keeps_its_former_name_for_annotations() -> None:
    assert instrumentation.Run is instrumentation.InstrumentedRun


class Loader:
    """Batches that take a while to come."""

    def __init__(self, count: int, seconds: float = 0.0) -> None:
        self.count, self.seconds = count, seconds

    def __iter__(self) -> Iterator[Tensor]:
        for _ in range(self.count):
            time.sleep(self.seconds)
            yield torch.ones(4, 8)


class Slow(nn.Linear):
    """A layer whose forward pass takes a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(8, 1)
        self.seconds = seconds

    def forward(self, batch: Tensor) -> Tensor:
        time.sleep(self.seconds)
        return super().forward(batch)


def train(
    model: nn.Module, loader: Loader, *, every: int = 4, other: float = 0.0, **wishes: Any
) -> smoke_training.instrumentation.InstrumentedRun[Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with smoke_training.instrument(model, optimizer, loader, every=every, **wishes) as run:
        for batch in run.batches():
            model(batch).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(other)
    return run


def least(run: smoke_training.instrumentation.InstrumentedRun[Tensor], part: str) -> float:
    """Of all steps: what was booked wrongly is in every one, what other processes cost is not."""
    return min(float(getattr(step, part)) for step in run.history)


@pytest.mark.parametrize(
    ("slow", "part"),
    [
        ({"loader": Loader(8, PAUSE)}, "data"),
        ({"model": Slow(PAUSE)}, "compute"),
        ({"other": PAUSE}, "other"),
    ],
)
def test_lost_time_is_found_where_it_was_lost(slow: dict[str, Any], part: str) -> None:
    run = train(**{"model": Slow(), "loader": Loader(8), **slow})
    for name in ("data", "compute", "exposed", "checkpoint", "other"):
        assert (least(run, name) >= PAUSE) == (name == part), name
    # What is lost between two clocks is lost in every step; another process takes its time now and then.
    assert any(sum(step[:5]) == pytest.approx(step.total, rel=0.02) for step in run.history)


def test_checkpoints_have_their_own_place() -> None:
    model = Slow()
    with smoke_training.instrument(model, None, Loader(4), every=2) as run:
        for batch in run.batches():
            model(batch).mean().backward()
            if run.step % 2 == 0:
                with run.checkpoint():
                    time.sleep(PAUSE)
    assert [step.checkpoint >= PAUSE for step in run.history] == [False, True, False, True]
    assert min(step.other for step in run.history[1::2]) < PAUSE


def test_the_last_incomplete_window_is_recorded_too(tmp_path: Path) -> None:
    result: list[Record] = []
    train(Slow(), Loader(10), every=4, jsonl=tmp_path / "steps.jsonl", on_record=result.append)
    written = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert [(record["step"], record["steps"]) for record in written] == [(4, 4), (8, 4), (10, 2)]
    assert json.loads(json.dumps(result)) == written
    assert written[0]["straggler"] is None
    assert "no peers" in written[0]["straggler_reason"]


def test_a_record_becomes_flat_numbers() -> None:
    run = train(Slow(), Loader(4, 5 * PAUSE))
    assert run.latest is not None
    found = metrics(run.latest)
    assert found["step/lost_to_data"] > 0.5
    assert found["step/exposed_communication_seconds"] < PAUSE
    assert all(isinstance(value, float) for value in found.values())


def test_leaving_the_loop_early_keeps_its_last_step() -> None:
    model = Slow()
    with smoke_training.instrument(model, None, Loader(100), every=50) as run:
        for batch in run.batches():
            model(batch).mean().backward()
            if run.step == 3:
                break
    assert len(run.history) == 3


def test_several_epochs_count_on() -> None:
    model = Slow()
    with smoke_training.instrument(model, None, Loader(3), every=2) as run:
        for _ in range(2):
            for batch in run.batches():
                model(batch).mean().backward()
    assert (run.step, len(run.history)) == (6, 6)


def test_accumulated_passes_and_evaluations_belong_to_their_step() -> None:
    model = Slow(PAUSE)
    with smoke_training.instrument(model, None, Loader(4), every=1) as run:
        for batch in run.batches():
            for _ in range(3):
                model(batch).mean().backward()
            with torch.no_grad():
                model(batch)
            time.sleep(PAUSE)  # after an evaluation: not compute
    assert 4 * PAUSE <= least(run, "compute") < 5 * PAUSE
    assert least(run, "other") >= PAUSE


@pytest.mark.parametrize("shape", ["tuple", "dict"])
def test_models_may_return_more_than_a_tensor(shape: str) -> None:
    class Rich(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 1)

        def forward(self, batch: Tensor) -> object:
            out = self.layer(batch)
            return (None, [out]) if shape == "tuple" else {"logits": out, "name": "x"}

    model = Rich()
    with smoke_training.instrument(model, None, Loader(2), every=1) as run:
        for batch in run.batches():
            found = model(batch)
            out = found[1][0] if shape == "tuple" else found["logits"]
            out.mean().backward()
            time.sleep(PAUSE)
    assert least(run, "other") >= PAUSE > least(run, "compute")


def test_a_broken_tracker_costs_a_warning_and_no_training() -> None:
    def broken(_record: Record) -> None:
        raise ConnectionError("tracking is down")

    with pytest.warns(RuntimeWarning, match="tracking is down"):
        run = train(Slow(), Loader(8), on_record=broken)
    assert len(run.history) == 8
    assert run.problems[0].startswith("ConnectionError")


def test_the_hooks_are_gone_afterwards() -> None:
    model = Slow()
    train(model, Loader(2))
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_an_exception_of_the_loop_passes_through_and_leaves_nothing_behind() -> None:
    model = Slow()
    with pytest.raises(KeyError), smoke_training.instrument(model, None, Loader(5), every=1) as run:
        for batch in run.batches():
            model(batch)
            raise KeyError(run.step)
    assert not model._forward_hooks


class Plain(nn.Module):
    """A model that compiles."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, batch: Tensor) -> Tensor:
        out: Tensor = self.layer(batch) * 2
        return out


@pytest.mark.parametrize("how", ["call", "module"])
def test_compiled_models_keep_a_full_graph(how: str) -> None:
    model: Any = Plain()
    if how == "call":
        model = torch.compile(model, backend="eager", fullgraph=True)
    else:
        model.compile(backend="eager", fullgraph=True)
    before = model._compiled_call_impl
    run = train(model, Loader(3))
    assert len(run.history) == 3
    assert least(run, "compute") > 0
    assert model._compiled_call_impl is before


def test_a_loop_may_have_several_models_no_optimizer_of_torch_and_no_backward_pass() -> None:
    class Wrapped:
        def step(self) -> None: ...

    models = [Slow(PAUSE), Slow(PAUSE)]
    with smoke_training.instrument(models, Wrapped(), Loader(2), every=1) as run:  # type: ignore[arg-type]
        for batch in run.batches():
            with torch.no_grad():
                for model in models:
                    model(batch)
    assert least(run, "compute") >= 2 * PAUSE
    assert not any(model._forward_hooks for model in models)


def test_two_loops_at_once_and_loader_processes_leave_torch_as_it_was() -> None:
    before = vars(dist.Work)["wait"]
    data: Any = torch.utils.data.DataLoader(torch.ones(4, 8), num_workers=1, multiprocessing_context="fork")  # type: ignore[arg-type]
    with smoke_training.instrument(Slow(), None, Loader(2), every=1) as outer:
        for _ in outer.batches():
            with smoke_training.instrument(Slow(), None, data, every=1) as inner:
                assert sum(1 for _ in inner.batches()) == 4
            assert vars(dist.Work)["wait"] is not before
    assert vars(dist.Work)["wait"] is before


def test_a_forked_process_may_leave_the_loop() -> None:
    with smoke_training.instrument(Slow(), None, Loader(2), every=1) as run:
        for _ in run.batches():
            pid = os.fork()
            if pid == 0:
                break
            assert os.waitpid(pid, 0)[1] == 0
    if pid == 0:
        os._exit(0)
    assert len(run.history) == 2


def test_rates_count_the_tokens_of_batches_however_they_are_split() -> None:
    model, flops, peak = nn.Embedding(10, 4), 1e6, 1e-3

    class Tokens(Loader):
        def __iter__(self) -> Iterator[Any]:
            return ({"input_ids": torch.ones(4, 8, dtype=torch.long)} for _ in range(6))

    wishes = {"flops_per_token": flops, "peak_tflops": peak}
    with smoke_training.instrument(model, None, Tokens(6), every=6, **wishes) as run:  # type: ignore[arg-type]
        for batch in run.batches():
            for part in batch["input_ids"].split(1):
                model(part).mean().backward()
    record: Any = run.latest
    assert record["tokens_per_second"] == pytest.approx(32 / record["seconds"]["total"])
    assert record["mfu"] == pytest.approx(record["tokens_per_second"] * flops / (peak * 1e12))
    assert 0 < record["ettr"] < 1
    assert metrics(record)["step/mfu"] == record["mfu"]


def test_a_rank_is_compared_with_its_own_history() -> None:
    slow = Slow(PAUSE / 4)
    records: list[Any] = []
    with smoke_training.instrument(
        slow, None, Loader(7), every=1, on_record=records.append, hang_s=None
    ) as run:
        for batch in run.batches():
            slow.seconds = PAUSE / 4 if run.step < 7 else 8 * PAUSE
            slow(batch).mean().backward()
    found = [record["slowdown_to_own_history"] for record in records]
    assert found[:5] == [None] * 5
    assert found[6] > 2


def test_batches_without_tokens_have_a_reason_and_a_broken_count_costs_no_training() -> None:
    with pytest.warns(RuntimeWarning, match="tokens: ZeroDivisionError"):
        run = train(Slow(), Loader(4), tokens=lambda _: 1 // 0)
    record: Any = run.latest
    assert (len(run.history), record["tokens_per_second"], record["mfu"]) == (4, None, None)
    assert "tokens" in record["mfu_reason"]
    assert train(Slow(), Loader(4)).problems == []


def test_a_rank_that_takes_longer_stands_out_after_a_few_windows() -> None:
    comparison = PeerComparison(4)
    for window in range(6):
        comparison.add([0.10, 0.101, 0.13 + window * 1e-4, 0.099])
    found = comparison.standings()
    worst = max(found, key=lambda standing: standing.slowdown)
    assert worst.rank == 2
    assert worst.slowdown == pytest.approx(1.3, rel=0.02)
    assert worst.ci95 is not None
    assert worst.ci95[0] > 1.2
    assert all(standing.slowdown == pytest.approx(1, rel=0.02) for standing in found if standing.rank != 2)


def test_few_windows_have_no_interval_and_one_rank_no_comparison() -> None:
    comparison = PeerComparison(2)
    assert comparison.standings() == []
    comparison.add([0.1, 0.2])
    assert [standing.ci95 for standing in comparison.standings()] == [None, None]
    with pytest.raises(ValueError, match="3 figures"):
        comparison.add([0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="peers"):
        PeerComparison(1)
