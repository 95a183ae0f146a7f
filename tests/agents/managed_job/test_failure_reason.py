"""Reason of a script failure, in 1024 characters."""

import signal

import pytest

from agents.managed_job.failure_reason import LIMIT, reason, traceback
from agents.managed_job.supervisor import ProgramExit

HANDLED = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "KeyError: 'handled'"]
FATAL = [
    "Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "    main()",
    "ValueError: the loss is nan",
]  # fmt: skip


def test_the_last_traceback_counts_and_its_error_comes_first() -> None:
    found = reason("train.py", ProgramExit(code=1, last=(*HANDLED, "step 3", *FATAL))).splitlines()
    assert found == ["train.py: exit code 1: ValueError: the loss is nan", *FATAL[:-1]]


def test_of_several_ranks_the_one_that_failed_first_counts() -> None:
    """What torchrun 2.13 wrote when rank 1 of two had raised and rank 0 had lost it."""
    lines = [f"[rank1]: {line}" for line in FATAL]
    lines += ["[rank0]: Traceback (most recent call last):", '[rank0]:   File "train.py", line 5']
    lines += ["[rank0]: RuntimeError: Connection closed by peer", *HANDLED[:2]]
    lines += [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "====",
        "train.py FAILED",
    ]
    lines += ["Root Cause (first observed failure):", "[0]:", "  time      : 2026-11-26_16:00:00"]
    lines += ["  rank      : 1 (local_rank: 1)", "  exitcode  : 1 (pid: 7)"]
    assert traceback(lines) == FATAL


def test_a_long_traceback_loses_its_beginning() -> None:
    calls = [f'  File "deep.py", line {n}, in f' for n in range(200)]
    found = reason("train.py", ProgramExit(code=1, last=(FATAL[0], *calls, FATAL[-1])))
    assert len(found) <= LIMIT
    assert found.startswith("train.py: exit code 1: ValueError: the loss is nan\n")
    assert found.endswith("line 199, in f")


def test_an_error_without_end_leaves_room_for_where_it_was() -> None:
    found = reason("train.py", ProgramExit(code=1, last=(*FATAL[:-1], "ValueError: " + "x" * 5000)))
    assert len(found) <= LIMIT and found.endswith("    main()")


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (ProgramExit(code=7, last=("bad input", "")), "train.py: exit code 7: bad input"),
        (ProgramExit(code=7), "train.py: exit code 7"),
        (ProgramExit(code=139, killed_by=11), "train.py: ended by SIGSEGV, exit code 139"),
    ],
)
def test_without_a_traceback_the_last_words_count(ended: ProgramExit, words: str) -> None:
    assert reason("train.py", ended) == words


def test_a_stop_and_out_of_memory_are_reported() -> None:
    killed = ProgramExit(code=137, killed_by=9)
    assert "out of memory" in reason("train.py", killed, out_of_memory=True)
    stopped = reason("train.py", ProgramExit(code=143), stopped=signal.SIGTERM)
    assert stopped == "train.py: stopped by SIGTERM, exit code 143"
