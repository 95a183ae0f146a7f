"""Logs of training loops: pytorch/torchtitan and Megatron-LM, lines as published, hosts renamed."""

import random
import re
from collections.abc import Callable, Iterator

import pytest

from smoke_training.foreign import step_log
from smoke_training.model import Judgement, Verdict
from smoke_training.reader import DocumentError

# pytorch/torchtitan, Llama3 8B on 8 H100 (pytorch/tutorials, 2025-06-04)
TITAN = """\
[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step:  1  loss: 12.2254  memory: 27.34GiB(28.78%)  tps: 375  tflops: 21.73  mfu: 2.20%
[rank0]:[titan] 2025-06-04 08:51:58,557 - root - INFO - step: 10  loss: 10.7069  memory: 30.99GiB(32.62%)  tps: 7,034  tflops: 407.35  mfu: 41.19%
[rank0]:[titan] 2025-06-04 08:52:10,224 - root - INFO - step: 20  loss:  8.9196  memory: 30.99GiB(32.62%)  tps: 7,022  tflops: 406.65  mfu: 41.12%
"""


def lines(
    count: int = 60, slow_from: int = 10**9, factor: float = 1.3, rate: float = 7000.0
) -> Iterator[str]:
    """Lines of torchtitan; from a step on each takes `factor` times as long."""
    dice = random.Random(1)
    for step in range(1, count + 1):
        tps = rate / (factor if step >= slow_from else 1.0) * dice.lognormvariate(0, 0.01)
        yield f"[rank0]:[titan] 2025-06-04 08:52:{step % 60:02},000 - root - INFO - step: {step:2}  loss:  8.9196  tps: {tps:,.0f}\n"


def judged(text: list[str], earlier: list[str] | None = None) -> Judgement:
    return step_log.judge(step_log.parse(text), None if earlier is None else step_log.parse(earlier))


def status(found: Judgement, name: str) -> Verdict:
    return next(check.status for check in found.checks if check.id == name)


def test_a_published_log_is_read_by_steps_losses_and_rates() -> None:
    text = TITAN.splitlines() + [line.replace("[rank0]", "[rank1]") for line in TITAN.splitlines()]
    found = step_log.parse([*text, *lines(12)])
    assert (found.unit, found.steps[:3], found.losses) == ("s per token", [1, 10, 20], 15)  # rank 0 alone
    assert 1 / found.durations[1] == pytest.approx(7034)
    assert found.restarts == 1


@pytest.mark.parametrize(
    "line",
    [
        " iteration {0}/ 129 | consumed samples: 25600 | elapsed time per iteration (ms): 350.0 | lm loss: 9.21E+00 |",
        "step: {0} loss: 9.2\x1b[0m elapsed_time_per_step: 0.35s",
        "step {0} | loss 9.2 | step time: 350 ms",
        # NVIDIA-BioNeMo/bionemo-recipes#740: NeMo's progress
        "Training epoch 0, iteration {0}/149 | lr: 3e-05 | reduced_train_loss: 1.2 | train_step_timing in s: 0.35 | val_loss: 4.1",
        "iter {0}: loss 3.2000, time 350.00ms, mfu 30.00%",  # karpathy/nanoGPT
        # karpathy/llm.c
        "step  {0}/19560 | loss 8.9 (+0.00z)| norm 3.1 (+0.00z)| lr 1.9e-05 | 350.00 ms | 50.0% bf16 MFU | 2225432 tok/s",
        "Epoch 1 | iter {0} step 2 | loss train: 1.900, val: n/a | iter time: 350.00 ms (step)",  # Lightning-AI/litgpt
        "INFO:tensorflow:global step {0}: loss = 79.3501 (0.35 sec/step)",
    ],
)
def test_times_per_step_are_read_in_their_units(line: str) -> None:
    assert step_log.parse([line.format(n) for n in range(1, 15)]).durations == pytest.approx([0.35] * 14)


def test_a_step_counts_once_and_steps_of_validation_do_not() -> None:
    """Eight ranks print into one file without their numbers, as torchtitan does without --log-rank."""
    text = [line.removeprefix("[rank0]:") for line in lines(40)]
    validation = [line.replace("INFO - step", "INFO - validate step") for line in text[9::10]]
    found = step_log.parse(line for line in [*validation[:1], *text, *validation] for _ in range(8))
    assert (len(found.durations), found.losses, found.restarts) == (40, 40, 0)


def test_the_clock_of_the_lines_is_the_last_resort_and_jumps_are_left_out() -> None:
    clock = [f"2025-06-04 08:{n:02}:00,000 step: {10 * n} loss: 9.2" for n in range(1, 30)]
    back = [line.replace("08:", "07:", 1) for line in clock[14:]]
    found = step_log.parse([*clock[:14], *back])
    assert set(found.durations) == {6.0} and found.jumps == 1


def test_a_steady_run_is_undecided_without_a_log_to_compare_with_and_passes_with_one() -> None:
    assert judged(list(lines())).verdict is Verdict.INCONCLUSIVE
    assert judged(list(lines()), list(lines(rate=7100))).verdict is Verdict.PASS
    slower = judged(list(lines(rate=5000)), list(lines()))
    assert (slower.verdict, status(slower, "training.speed")) == (Verdict.FAIL, Verdict.FAIL)


def test_a_lasting_slowdown_within_the_run_fails_and_names_the_step() -> None:
    found = judged(list(lines(200, slow_from=120)))
    assert status(found, "training.steady") is Verdict.FAIL
    assert "from about step 1" in next(
        check.message for check in found.checks if check.id == "training.steady"
    )


@pytest.mark.parametrize("loss", ["nan", "-inf", "NaN"])
def test_a_loss_that_is_no_number_fails(loss: str) -> None:
    found = judged([*lines(20), f"step: 21 loss: {loss} tps: 7,000"])
    assert found.verdict is Verdict.FAIL and status(found, "numerics.finite") is Verdict.FAIL


def test_long_logs_are_thinned() -> None:
    found = step_log.parse(lines(30_000))
    assert len(found.durations) <= step_log.KEPT and found.losses == 30_000


@pytest.mark.parametrize("text", [[], ["no steps here"], TITAN.splitlines()])
def test_too_few_steps_are_refused(text: list[str]) -> None:
    with pytest.raises(DocumentError, match="10 needed"):
        step_log.parse(text)


def megatron(step: int, ms: float, batch: int, rest: str = "lm loss: 8.0E+00 |", nan: int = 0) -> str:
    """A line of Megatron-LM's training_log (megatron/training/training.py)."""
    return (
        f" iteration {step:8d}/  100000 | consumed samples: {step * batch:12d} | elapsed time per iteration (ms): {ms:.1f}"
        f" | global batch size: {batch:5d} | {rest} loss scale: 1.0 | number of nan iterations: {nan:3d} |"
    )


def test_a_batch_size_that_grows_is_no_slowdown_but_longer_samples_are() -> None:
    grows = [megatron(n, 500 * (1 + n // 100) + n % 7, 256 * (1 + n // 100)) for n in range(1, 400)]
    assert status(judged(grows), "training.steady") is Verdict.PASS
    slow = [megatron(n, (500 + n % 7) * (1.4 if n > 250 else 1), 256) for n in range(1, 400)]
    assert status(judged(slow), "training.steady") is Verdict.FAIL


def test_iterations_that_were_nan_and_so_printed_no_loss_fail() -> None:
    text = [megatron(n, 500, 256) for n in range(1, 50)]
    found = judged([*text, *(megatron(n, 500, 256, rest="", nan=10) for n in range(50, 60))])
    assert status(found, "numerics.finite") is Verdict.FAIL


@pytest.mark.parametrize(
    "line",
    [
        # pytorch/pytorch ProcessGroupNCCL.cpp; torch/distributed/elastic; CUDA
        "[rank3]:[E1124 10:20:01 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1201)",
        "E1124 10:20:05 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: -6) local_rank: 3 (pid: 1234) of binary: python",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "srun: error: node-a: task 3: Exited with exit code 1",
    ],
)
def test_a_run_that_something_ended_is_an_error(line: str) -> None:
    known, text = list(lines(100)), list(lines(40))
    assert status(judged([*text, line], known), "run.completed") is Verdict.ERROR
    assert judged([*text, line, *text], known).verdict is Verdict.ERROR  # and it started again
    assert judged([*text[:20], line, *text[20:]], known).verdict is Verdict.PASS  # of something beside it
    assert judged([*text[:4], line], known).verdict is Verdict.ERROR


def staged(loss: str, last: str | None) -> list[str]:
    """Rank 0 has no last stage of a pipeline and prints -1 (pytorch/torchtitan#1232, #550)."""
    first = [re.sub(r"loss: +[\d.]+", f"loss: {loss}  grad_norm: 1.2", line) for line in lines(60)]
    both = (
        (line, line.replace("[rank0]", "[rank7]").replace(f"loss: {loss}", f"loss: {last}")) for line in first
    )
    return [line for pair in both for line in pair[: 2 if last else 1]]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (staged("-1.0000", "5.0"), Verdict.PASS),
        (staged("-1.0000", "nan"), Verdict.FAIL),
        (staged("-1.0000", None), Verdict.INCONCLUSIVE),
        ([line.replace("norm: 1.2", "norm:  nan") for line in staged("5.0", None)], Verdict.INCONCLUSIVE),
    ],
    ids=["healthy", "the last stage is NaN", "no loss", "gradients"],
)
def test_the_loss_is_that_of_the_rank_that_has_one(text: list[str], verdict: Verdict) -> None:
    assert judged(text, staged("-1.0000", "5.0")).verdict is verdict


@pytest.mark.parametrize("count", [200, 12_000], ids=["kept", "thinned"])
@pytest.mark.parametrize(
    "slow",
    [lambda n, _: 5.0 * (n % 10 >= 7), lambda n, count: 0.5 * count * (n == 101)],
    ids=["30 %", "a stall"],
)
def test_long_steps_that_a_median_does_not_see_are_no_pass(
    slow: Callable[[int, int], float], count: int
) -> None:
    line = "step {} | loss 9.2 | step time: {:.0f} ms"
    even = [line.format(n, 350) for n in range(count)]
    text = [line.format(n, 350 * max(1.0, slow(n, count))) for n in range(count)]
    assert judged(text, even).verdict is Verdict.INCONCLUSIVE
    assert judged(even, text).verdict is Verdict.PASS


def test_steps_are_compared_at_batch_sizes_of_both_logs() -> None:
    """Fewer samples take longer each: pipelines of small batches wait."""

    def log(*sizes: int, factor: float = 1.0) -> list[str]:
        return [
            megatron(40 * place + n, (2000 + 10 * size) * factor, size)
            for place, size in enumerate(sizes)
            for n in range(1, 41)
        ]

    ramp, full = (64, 128, 256, 256), (256, 256, 256)
    assert judged(log(*ramp), log(*full)).verdict is Verdict.PASS
    assert judged(log(*full), log(*ramp)).verdict is Verdict.PASS
    assert judged(log(*full, factor=1.4), log(*ramp)).verdict is Verdict.FAIL
    assert judged(log(*full), log(128, 128)).verdict is Verdict.INCONCLUSIVE
