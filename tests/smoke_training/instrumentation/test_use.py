"""Loops that use `instrument` wrongly are reported once; rates that cannot be stated have their reason."""

import warnings
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import smoke_training
from smoke_training.instrumentation import InstrumentedRun
from tests.smoke_training.instrumentation.test_run import Loader, train

BATCHES = [torch.ones(4, 8)] * 8


def without_batches(run: InstrumentedRun[Tensor], model: nn.Module) -> None:
    with run:
        for batch in BATCHES:
            model(batch).mean().backward()


def without_with(run: InstrumentedRun[Tensor], model: nn.Module) -> None:
    for batch in run.batches():
        model(batch).mean().backward()


def without_both(_run: InstrumentedRun[Tensor], model: nn.Module) -> None:
    for batch in BATCHES:
        model(batch).mean().backward()


@pytest.mark.parametrize("every", [3, 8])
@pytest.mark.parametrize(
    ("loop", "missing"),
    [
        (without_batches, r"run\.batches"),
        (without_with, "`with` statement"),
        (without_both, "`with` statement"),
    ],
)
def test_a_loop_that_is_not_recorded_is_reported_once(loop: Any, missing: str, every: int) -> None:
    model = nn.Linear(8, 1)
    run = smoke_training.instrument(model, None, Loader(8), every=every)
    with pytest.warns(RuntimeWarning, match=missing) as seen:
        loop(run, model)
    assert len(seen) == len(run.problems) == 1
    assert all(word in run.problems[0] for word in ("steps, rates", "with instrument", "run.batches()"))
    assert run.latest is None


class Traced(Tensor):
    """A tensor that knows what was computed from it."""

    results: ClassVar[list[weakref.ref[Tensor]]] = []

    @classmethod
    def __torch_function__(cls, *arguments: Any, **options: Any) -> Any:
        found = super().__torch_function__(*arguments, **options)  # type: ignore[no-untyped-call]
        if isinstance(found, Tensor):
            cls.results.append(weakref.ref(found))
        return found


def test_losses_of_a_loop_that_is_not_recorded_are_not_kept() -> None:
    loss = torch.ones(()).as_subclass(Traced)
    run = smoke_training.instrument(nn.Linear(8, 1), None, Loader(8))
    with pytest.warns(RuntimeWarning, match="batches"), run:
        for _ in BATCHES:
            run.loss(loss)
        assert all(kept() is None for kept in Traced.results)


@pytest.mark.filterwarnings("ignore:step instrumentation")
@pytest.mark.parametrize(("value", "problems"), [(None, 0), ({"loss": torch.ones(1)}, 1)])
def test_a_loss_that_is_none_or_cannot_be_read_does_not_end_the_loop(value: Any, problems: int) -> None:
    with smoke_training.instrument(nn.Linear(8, 1), None, Loader(8), every=2) as run:
        for _ in run.batches():
            run.loss(value)
    assert run.step == 8 and len(run.problems) == problems


def test_a_short_loop_without_batches_is_reported_at_its_end() -> None:
    model = nn.Linear(8, 1)
    with pytest.warns(RuntimeWarning, match="batches"):
        without_batches(smoke_training.instrument(model, None, Loader(8), every=50), model)


@pytest.mark.parametrize("rank", ["0", "3"])
def test_only_the_first_rank_reports(rank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", rank)  # the process group is made later
    model = nn.Linear(8, 1)
    run = smoke_training.instrument(model, None, Loader(8), every=2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        without_batches(run, model)
    assert len(run.problems) == len(seen) == (rank == "0")


def test_evaluations_before_the_loop_and_loops_that_fail_are_not_reported() -> None:
    model = nn.Linear(8, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with smoke_training.instrument(model, None, Loader(4), every=2) as run:
            with torch.no_grad():
                for batch in BATCHES:
                    model(batch)
            for batch in run.batches():
                model(batch).mean().backward()
        with pytest.raises(KeyError), smoke_training.instrument(model, None, Loader(4)):
            raise KeyError("data")
    assert len(run.history) == 4 and run.problems == []
    assert not model._forward_pre_hooks


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"every": 0}, "every"), ({"every": "50"}, "every"), ({"every": 2.5}, "every"),
        ({"every": True}, "every"), ({"every": None}, "every"),
        ({"hang_s": "300"}, "hang_s"), ({"hang_s": 0}, "hang_s"),
        ({"hang_s": -1.0}, "hang_s"), ({"hang_s": [300]}, "hang_s"), ({"hang_s": float("nan")}, "hang_s"),
        ({"hang_s": True}, "hang_s"),
    ],
    ids=str,
)  # fmt: skip
def test_values_of_another_type_are_refused(wrong: dict[str, Any], path: str) -> None:
    with pytest.raises(ValueError, match=f"^{path}: got "):
        smoke_training.instrument(nn.Linear(8, 1), None, Loader(1), **wrong)


class Tokens(Loader):
    """Batches that are counted."""

    def __iter__(self) -> Any:
        return (torch.ones(2, 8, dtype=torch.long) for _ in range(self.count))


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"flops_per_token": 1e6, "peak_tflops": 0}, "peak_tflops"),
        ({"flops_per_token": 1e6}, "peak_tflops"),
        ({"flops_per_token": -1.0, "peak_tflops": 989.0}, "flops_per_token"),
        ({}, "flops_per_token, peak_tflops"),
    ],
    ids=str,
)  # fmt: skip
def test_a_missing_utilisation_names_what_it_needs(given: dict[str, Any], needed: str) -> None:
    model = nn.Sequential(nn.Embedding(10, 4))
    run = train(model, Tokens(4), **given)
    record: Any = run.latest
    assert record["mfu"] is None and record["mfu_reason"] == f"needs {needed} above 0"
    assert record["tokens_per_second_all"] == record["tokens_per_second"] > 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_losses_of_one_rank_are_reported_and_those_that_cannot_be_read_lose_no_record() -> None:
    losses: Iterator[Tensor | float] = iter(
        [1.0, torch.zeros((), device="meta"), torch.full((2,), 1e308, dtype=torch.float64), float("nan")]
    )
    with smoke_training.instrument(nn.Linear(8, 1), None, Loader(4), every=4) as run:
        for _ in run.batches():
            run.loss(next(losses))
    unreadable, broken = run.problems
    assert "losses on meta" in unreadable
    assert "rank 0 " in broken
    assert "step 4" in broken
    assert run.latest is not None
    assert run.latest["nonfinite_loss_step"] == 4
