import math
from collections.abc import Mapping
from typing import Any

import pytest

from smoke_training.evidence import UndeliveredError
from smoke_training.judges.training import numerics as judge
from smoke_training.model import Cause, Check, Verdict
from tests.smoke_training.samples import lines, numerics, parsed, plan

RANKS = 4


def world() -> dict[str, Any]:
    found = next(line for line in lines() if line["kind"] == "world")
    one = found["ranks"][0]
    ranks = [{**one, "rank": r, "node": r, "host": f"smoke-ab-{r}", "pid": r} for r in range(RANKS)]
    return {**found, "wanted": RANKS, "ranks": ranks}


def record(**changes: Any) -> dict[str, Any]:
    return {**numerics()[0], "checksums": [["aa", "bb", "cc"]] * RANKS, **changes}


def bad(rank: int, step: int, parameter: str = "head.weight", **count: int) -> dict[str, Any]:
    return {"rank": rank, "step": step, "parameter": parameter, "nan": 1, "infinite": 0, **count}


def judged(name: str, *records: Mapping[str, Any], **plan_changes: Any) -> Check:
    found = getattr(judge, name)(plan(**plan_changes), parsed([world(), *map(dict, records)]))
    assert isinstance(found, Check)
    return found


def status(name: str, *records: Mapping[str, Any]) -> Verdict:
    found = judged(name, *records)
    assert found is not None
    return found.status


def test_finite_and_equal_gradients_pass() -> None:
    assert status("finite", record()) is Verdict.PASS
    assert status("gradients", record()) is Verdict.PASS


def test_a_nan_is_blamed_on_the_rank_that_had_it_before_the_reduction() -> None:
    everywhere = [bad(rank, 42) for rank in range(RANKS)]  # a step later the weights are poisoned
    found = judged("finite", record(nonfinite=[*everywhere, bad(2, 41, "blocks.1.up.weight", infinite=2)]))
    assert found is not None
    assert found.status is Verdict.FAIL
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.id, culprit.node, culprit.cause) == ("rank", "2", "smoke-ab-2", Cause.NAN)
    facts = ("rank 2: 1 NaN", "2 infinite", "blocks.1.up.weight", "step 41")
    assert all(fact in found.message for fact in facts)
    assert found.measured is not None
    assert found.measured.value == 2.0


def test_the_first_phase_with_a_nan_names_the_owner() -> None:
    later = record(phase="parity", nonfinite=[bad(0, 0)])
    found = judged("finite", record(nonfinite=[bad(3, 100)]), later)
    assert found is not None
    assert [culprit.id for culprit in found.culprits] == ["3"]


def test_two_ranks_at_the_same_step_are_both_owners() -> None:
    found = judged("finite", record(nonfinite=[bad(3, 7), bad(1, 7), bad(1, 7, "norm.bias")]))
    assert found is not None
    assert [culprit.id for culprit in found.culprits] == ["1", "3"]


@pytest.mark.parametrize("name", ["finite", "gradients"])
def test_numbers_that_were_not_looked_at_never_pass(name: str) -> None:
    with pytest.raises(UndeliveredError):
        judged(name)
    with pytest.raises(UndeliveredError):
        judged(name, record(phase="parity"))
    assert judged(name, record(phase="parity"), phases=["parity"]) is not None
    assert status(name, record(passes=0, steps=[], checksums=[[]] * RANKS)) is Verdict.ERROR


def test_a_rank_with_other_bits_is_accused() -> None:
    sums = [["aa", "bb", "cc"], ["aa", "xx", "cc"], ["aa", "bb", "cc"], ["aa", "bb", "cc"]]
    found = judged("gradients", record(checksums=sums, differing=["head.weight"]))
    assert found is not None
    assert found.status is Verdict.FAIL
    (culprit,) = found.culprits
    assert (culprit.id, culprit.cause) == ("1", Cause.CORRUPTION)
    assert "head.weight" in culprit.evidence[1]
    assert "rank 1 differs" in found.message and "step 3" in found.message


def test_without_a_majority_no_rank_is_accused() -> None:
    sums = [["aa", "bb", "xx"], ["aa", "bb", "xx"], ["aa", "bb", "cc"], ["aa", "bb", "cc"]]
    found = judged("gradients", record(checksums=sums))
    assert found is not None
    assert found.status is Verdict.FAIL
    assert [(culprit.kind, culprit.cause) for culprit in found.culprits] == [("stack", Cause.CORRUPTION)]


def test_bits_of_a_poisoned_step_are_not_called_corrupt() -> None:
    sums = [["aa", f"b{rank}", "cc"] for rank in range(RANKS)]
    assert status("gradients", record(checksums=sums, nonfinite=[bad(0, 3)])) is Verdict.PASS
    assert status("gradients", record(checksums=sums, nonfinite=[bad(0, 2)])) is Verdict.FAIL


def sharded(**changes: Any) -> dict[str, Any]:
    losses = [5.0 - step / 10 for step in range(20)]
    return {
        "kind": "sharded", "dtype": "float32", "losses": losses, "replicated": losses,
        "step": [[0.05] * 40] * RANKS, "plain": [[0.02] * 40] * RANKS, "shard_bytes": [100] * RANKS,
        "parameter_bytes": 400, **changes,
    }  # fmt: skip


def test_sharded_parameters_that_train_like_replicated_ones_pass() -> None:
    found = judged("sharded", sharded())
    assert found is not None
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert found.measured.detail["efficiency"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    "changes",
    [
        {"losses": [5.0 - step / 10 + (1e-3 if step == 19 else 0) for step in range(20)]},
        {"losses": [float("nan")] * 20},
        {"shard_bytes": [400] * RANKS},  # every rank keeps everything
        {"shard_bytes": [10] * RANKS},  # parameters went missing
    ],
)
def test_sharding_that_changes_losses_or_shards_nothing_fails(changes: dict[str, Any]) -> None:
    assert status("sharded", sharded(**changes)) is Verdict.FAIL


def test_a_larger_model_on_more_ranks_may_round_further_apart() -> None:
    losses = [(5.0 - step / 10) * (1 + 2.3e-4 * (step == 19)) for step in range(20)]
    assert status("sharded", sharded(losses=losses)) is Verdict.FAIL
    assert status("sharded", sharded(losses=losses, tokens=4096)) is Verdict.PASS


def test_a_relative_difference_is_symmetric_and_infinite_where_a_loss_is_not_finite() -> None:
    assert judge.relative_difference(1.0, 1.0) == 0
    assert judge.relative_difference(2.0, 1.0) == judge.relative_difference(1.0, 2.0) == pytest.approx(0.5)
    assert judge.relative_difference(math.nan, 1.0) == math.inf
