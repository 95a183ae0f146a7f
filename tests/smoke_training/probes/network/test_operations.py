"""Buffers of the timed sweeps."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from smoke_training.formulae.bandwidth import ALL_REDUCE, COLLECTIVES
from smoke_training.probes.network.operations import Bench

RANKS = 4


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize(("cuda", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_timed_sweeps_send_random_numbers_of_the_type_of_gradients(
    name: str, cuda: bool, dtype: torch.dtype
) -> None:
    group = cast("Any", SimpleNamespace(cuda=cuda, device=torch.device("cpu"), world=RANKS, backend="gloo"))
    given = cast("Any", Bench(group, name, 1 << 16).operation(1 << 16)).args[1].float()
    assert Bench(group, name, 1 << 10).dtype is dtype
    assert 0.2 < given.abs().mean() * (RANKS if name == ALL_REDUCE else 1) < 0.8
    assert given.unique().numel() > 100


def test_sums_in_place_stay_finite_however_often_they_are_repeated() -> None:
    group = cast("Any", SimpleNamespace(cuda=True, device=torch.device("cpu"), world=RANKS, backend="gloo"))
    bench = Bench(group, ALL_REDUCE, 1 << 12)
    for _ in range(200):
        cast("Any", bench.operation(1 << 12)).args[1].mul_(RANKS)  # what a sum of equal ranks leaves
    assert bool(torch.isfinite(cast("Any", bench.operation(1 << 12)).args[1]).all())
