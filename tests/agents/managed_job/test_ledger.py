"""State of a run across interruptions."""

from pathlib import Path

import pytest

from agents.managed_job.ledger import NAME, AttemptLedger


def test_attempts_that_did_not_finish_are_interruptions(tmp_path: Path) -> None:
    first = AttemptLedger.read(tmp_path)
    first.mlflow_run_id = "abc"
    first.begin(100.0)
    first.see(160.0)  # then killed outright
    second = AttemptLedger.read(tmp_path)
    second.begin(1000.0)
    second.see(1010.0, "KILLED")
    third = AttemptLedger.read(tmp_path)
    third.begin(2000.0)
    third.see(2005.0, "FINISHED")
    assert (third.mlflow_run_id, third.interruptions, third.seconds) == ("abc", 2, 75.0)
    assert [attempt.status for attempt in third.attempts] == [None, "KILLED", "FINISHED"]


def test_a_clock_that_goes_back_takes_no_time_away(tmp_path: Path) -> None:
    ledger = AttemptLedger.read(tmp_path)
    ledger.begin(100.0)
    ledger.see(90.0)
    assert ledger.seconds == 0.0


@pytest.mark.parametrize("text", ["", "[]", '{"attempts": 1}', '{"attempts": [{"began": "x"}]}'])
def test_one_that_cannot_be_read_is_said_to_be_so(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(ValueError, match=NAME):
        AttemptLedger.read(tmp_path)
