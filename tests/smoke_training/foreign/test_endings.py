"""Outputs that end before the test did, and rows that no healthy program writes."""

from pathlib import Path

import pytest

from smoke_training.foreign import judgement, nccl_tests
from smoke_training.foreign.judgement import Claim
from smoke_training.model import Judgement, Verdict
from smoke_training.reader import DocumentError
from tests.smoke_training.foreign.shapes import ROOTED, output

WHOLE = next((Path(__file__).parent / "outputs").glob("12-*.txt")).read_text().splitlines(keepends=True)
LAST = next(n for n, line in enumerate(WHOLE) if line.startswith(" 17179869184"))
HALF = "".join(WHOLE[:LAST])  # up to 8 GiB, of 16 GiB
CLAIM, P5 = Claim(machine="hgx-h100", nodes=2), Claim(machine="p5.48xlarge", nodes=None)


def judged(text: str) -> Judgement:
    return judgement.judge(nccl_tests.parse(text.splitlines(keepends=True)), CLAIM)


def completed(found: Judgement) -> list[Verdict]:
    return [check.status for check in found.checks if check.id == "run.completed"]


def test_a_sweep_that_stopped_before_its_last_size_is_undecided() -> None:
    found = judged(HALF)
    assert (found.verdict, completed(found)) == (Verdict.INCONCLUSIVE, [Verdict.INCONCLUSIVE])
    assert judged("".join(WHOLE)).verdict is Verdict.PASS


def test_a_sweep_whose_next_size_would_be_too_large_has_ended() -> None:
    """From 8 bytes on by doubling, 15 GiB is never reached."""
    for most in (15 << 30, (16 << 30) - 1):
        assert completed(judged(HALF.replace("maxBytes 17179869184", f"maxBytes {most}"))) == []


def test_what_is_slow_before_the_end_stays_slow() -> None:
    slow = HALF.replace("34381  249.84  468.46", "71168  120.70  226.31")
    found = judged(slow.replace("34365  249.96  468.67", "71168  120.70  226.31"))
    assert (found.verdict, completed(found)) == (Verdict.FAIL, [Verdict.INCONCLUSIVE])


@pytest.mark.parametrize(
    "line",
    [
        # NVIDIA/nccl#1698, #426
        "b:1:2 [6] transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer 10.0.0.1<5> with status=12 opcode=129 len=8 vendor err 129 (Recv)",
        "b:1:2 [6] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
        "mpirun noticed that process rank 11 with PID 0 on node b exited on signal 9 (Killed).",
        "slurmstepd: error: *** STEP 123.0 ON a CANCELLED AT 2026-01-01T00:10:00 DUE TO TIME LIMIT ***",
        "srun: error: b: task 8: Segmentation fault",
    ],
)
def test_a_run_that_something_ended_is_an_error(line: str) -> None:
    found = judged(f"{HALF}{line}\n")
    assert (found.verdict, completed(found)) == (Verdict.ERROR, [Verdict.ERROR])


def test_a_launcher_that_reports_the_exit_code_after_the_total_ended_nothing() -> None:
    """nccl-tests exits with an error for wrong results, and below NCCL_TESTS_MIN_BW."""
    found = judged("".join(WHOLE) + "srun: error: b: task 8: Exited with exit code 1\n")
    assert (found.verdict, completed(found)) == (Verdict.PASS, [])


@pytest.mark.parametrize(
    "columns",
    [
        "-1 0.00 0.00 0.00 0 0.00 0.00 0.00 0",
        "-1 nan nan nan 0 nan nan nan 0",
        "-1 1e999 0.1 0.1 0 1e400 0.1 0.1 0",
        "1e999 4485 239.4 448.9 0 4485 239.4 448.9 0",
        "-1 4485 1e99999999999 448.9 0 4485 239.4 448.9 0",
    ],
)
def test_a_row_with_impossible_numbers_is_no_pass_and_no_crash(columns: str) -> None:
    odd = f" 17179869184    4294967296     float     sum      {columns}\n"
    assert judged(HALF + odd).verdict is Verdict.INCONCLUSIVE
    assert judged(HALF.replace("  8589934592", f"{'9' * 400}")).verdict is Verdict.INCONCLUSIVE


GOOD = {1 << 30: 480.0, 16 << 30: 480.0}  # GB/s of one p5 and of a pair


@pytest.mark.parametrize(
    ("beside", "verdict"),
    [
        (output("all_reduce", {128 << 20: 24.0}, "a", "b"), Verdict.INCONCLUSIVE),
        (output("broadcast", {16 << 30: 20.0}, "a", "b"), Verdict.INCONCLUSIVE),
        (output("all_reduce", {128 << 20: 24.0}, "c"), Verdict.INCONCLUSIVE),
        (output("broadcast", {16 << 30: 230.0}, "a"), Verdict.PASS),
    ],
    ids=["two nodes", "two nodes, broadcast", "another node", "the same node"],
)
def test_a_sweep_with_a_reference_judges_its_own_nodes_alone(beside: str, verdict: Verdict) -> None:
    for text in (output("all_reduce", GOOD, "a") + beside, beside + output("all_reduce", GOOD, "a")):
        found = judgement.judge(nccl_tests.parse(text.splitlines(True)), P5)
        assert found.verdict is verdict, found.checks
        assert sum("ranks on" in note for note in found.notes) == 1 + ("on          b" in beside)


@pytest.mark.parametrize(("rate", "verdict"), [(20.0, Verdict.INCONCLUSIVE), (230.0, Verdict.PASS)])
def test_a_broadcast_uses_all_wires_of_a_node(rate: float, verdict: Verdict) -> None:
    """400 GB/s on p5, 50 of them to a GPU."""
    text = output("all_reduce", GOOD, "a", "b") + output("broadcast", {16 << 30: rate}, "a", "b")
    assert judgement.judge(nccl_tests.parse(text.splitlines(True)), P5).verdict is verdict


HUNG = output("all_reduce", {}, "a", "b", "c", "d")  # NVIDIA/nccl-tests#278
LIMIT = "slurmstepd: error: *** STEP 123.0 ON a CANCELLED AT 2026-11-24T10:00:00 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(
    "text",
    [
        output("all_reduce", GOOD, "a", "b") + HUNG,
        HUNG + output("all_reduce", GOOD, "a", "b"),
        output("all_reduce", GOOD, "a", "b") + HUNG.partition("#  Rank")[0],
        output("all_reduce", GOOD, "a", "b") + LIMIT,
    ],
    ids=["last", "first", "before its ranks", "after its total"],
)
def test_a_test_that_never_ended_is_no_pass_beside_a_healthy_one(text: str) -> None:
    found = judgement.judge(nccl_tests.parse(text.splitlines(True)), P5)
    assert (found.verdict, completed(found)) == (Verdict.INCONCLUSIVE, [Verdict.INCONCLUSIVE])


def test_a_header_without_rows_hung() -> None:
    with pytest.raises(DocumentError, match="of 32 ranks began and printed no row: it hung"):
        judged(HUNG)
    with pytest.raises(DocumentError) as end:
        judged(ROOTED)
    assert "hung" not in str(end.value)


def test_a_range_of_ranks_without_end_is_refused() -> None:
    line = "#  Rank 0 .. Rank 3000000 on node-a NVIDIA H100\n"
    with pytest.raises(DocumentError, match="more than 65536 ranks"):
        judged(line + "".join(WHOLE))


@pytest.mark.parametrize(
    ("rate", "verdict"), [(1.5, Verdict.INCONCLUSIVE), (11.0, Verdict.INCONCLUSIVE), (45.0, Verdict.PASS)]
)
def test_a_ruined_test_without_a_reference_is_no_pass_beside_a_healthy_one(
    rate: float, verdict: Verdict
) -> None:
    """8 NICs of 50 GB/s for 8 GPUs; a small size alone says nothing of the wires."""
    header = "".join(WHOLE[: next(n for n, line in enumerate(WHOLE) if line.startswith("      262144"))])
    column = f"{(1 << 30) / rate / 1e3:.1f} {rate:.2f} {rate:.2f} 0"
    row = f" {1 << 30} {1 << 28} float none -1 {column} {column}\n# Avg bus bandwidth    : {rate}\n"
    pairs = "# Collective test starting: sendrecv_perf\n" + header + row
    found = judged("".join(WHOLE) + pairs)
    assert found.verdict is verdict
    assert any(f"{rate:.1f} GB/s" in check.message for check in found.checks)
