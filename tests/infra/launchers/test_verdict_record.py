"""Records of verdicts: one line of JSON within the limit, found again wherever the engine puts it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.verdict_record import LIMIT_BYTES, SCHEMA, VerdictRecord, readable, records

SLOW = VerdictRecord(
    "FAIL", 'FAIL straggler 1.42x, suspect "rank 1"', "trainstack-smoke/smoke-1", "a100", ("Next: Drain it.",)
)


def test_a_record_is_one_line_of_json_with_a_schema_and_its_sentence() -> None:
    assert json.loads(SLOW.line()) == {
        "schema": SCHEMA, "verdict": "FAIL", "message": SLOW.message, "run": SLOW.run, "pool": "a100",
        "details": ["Next: Drain it."],
    }  # fmt: skip
    assert json.loads(VerdictRecord("PASS", "PASS").line()) == {
        "schema": SCHEMA, "verdict": "PASS", "message": "PASS",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["{0}", "[Pod a/b]: [waits] [Error] {0}\nNext", '{{"a": 1}} {0}, exit code: 1']
)
def test_records_are_found_between_other_text_and_shown_as_sentences(text: str) -> None:
    diagnostic = text.format(SLOW.line())
    assert list(records(diagnostic)) == [SLOW]
    sentence = "validation trainstack-smoke/smoke-1: " + SLOW.message + "\nNext: Drain it."
    assert readable(diagnostic) == text.format(sentence)


@pytest.mark.parametrize(
    "text",
    [
        "", "no record", "{", SLOW.line()[:-2], SLOW.line().replace("/1", "/2"),
        '{"schema": "trainstack.verdict/1"}',
        json.dumps({**json.loads(SLOW.line()), "details": "no list"}),
    ],
)  # fmt: skip
def test_other_text_and_records_that_were_cut_off_are_left_as_they_are(text: str) -> None:
    assert list(records(text)) == []
    assert readable(text) == text


@given(
    st.text(max_size=6000), st.lists(st.text(max_size=900), max_size=9), st.sampled_from([900, LIMIT_BYTES])
)
def test_the_limit_holds_in_bytes_and_the_verdict_stays(message: str, details: list[str], limit: int) -> None:
    line = VerdictRecord("ERROR", message, "n/j", "p", tuple(details)).line(limit)
    assert len(line.encode()) <= limit and "\n" not in line
    (found,) = records(line)
    assert found.verdict == "ERROR"


@pytest.mark.parametrize("character", ['"', "\\", "\u00e9", "\U0001f40c", "x"])
@pytest.mark.parametrize("limit", [900, LIMIT_BYTES])
def test_a_long_message_is_cut_no_more_than_the_limit_needs(character: str, limit: int) -> None:
    line = VerdictRecord("FAIL", character * 9000, "n/j").line(limit)
    (found,) = records(line)
    assert limit - 4 < len(line.encode()) <= limit and found.message.startswith(character)
