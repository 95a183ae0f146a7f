"""Reports of ended runs: stopped is never a success, and spot savings are shown."""

import pytest

from infra.jobs import money, report
from infra.jobs.service import JobPhase, JobState, ServiceJob
from tests.infra.jobs.samples import OUTPUTS, job

PRICES = money.prices(OUTPUTS.machines)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (job(), ""),
        (job(state=JobState.FAILED, reason="AlgorithmError: no CUDA"), "AlgorithmError: no CUDA"),
        (job(state=JobState.STOPPED), "by request"),
        (job(state=JobState.STOPPED, phase=JobPhase.OUT_OF_TIME), "reached --max-hours"),
        (job(state=JobState.STOPPED, phase=JobPhase.WAITED_TOO_LONG), "no spot machines within --max-wait"),
        (job(state=JobState.RUNNING, phase=JobPhase.WAITING), "waiting for machines"),
    ],
)
def test_why_a_run_is_no_success(found: ServiceJob, said: str) -> None:
    assert said in report.reason(found) and bool(report.reason(found)) is bool(said)


def test_what_spot_saved_is_what_was_not_billed() -> None:
    lines = list(report.ending(job(spot=True, trained_s=3600, billed_s=1800), PRICES))
    assert all(fact in lines[1] for fact in ("$0.56", "30.0 minutes", "ml.g6.xlarge spot", "50%"))


def test_a_stopped_run_says_where_its_checkpoints_are_and_a_failed_one_shows_no_model() -> None:
    places = {"model_uri": "s3://out/model.tar.gz", "checkpoint_uri": "s3://ckpt/run"}
    stopped = list(report.ending(job(state=JobState.STOPPED, **places), PRICES))
    assert stopped[0].startswith("STOPPED") and "checkpoints  s3://ckpt/run" in stopped
    assert not any(
        line.startswith("model") for line in report.ending(job(state=JobState.FAILED, **places), PRICES)
    )


def test_the_table_reports_an_unknown_price_from_nothing() -> None:
    rows = [
        job("first", machine="ml.p6-b200.48xlarge", nodes=2),
        job("running", state=JobState.RUNNING, phase=JobPhase.TRAINING, ended=None, billed_s=None),
        job("second", state=JobState.FAILED, billed_s=None, reason="x\n" * 200),
    ]
    first, running, second = (report.row(one, PRICES) for one in rows)
    assert first[2] == "2 x ml.p6-b200.48xlarge" and first[5] == "unknown"
    assert running[3:] == ("running", "-", "up to $2.25", "training")
    assert second[5] == "$0.00" and second[6].endswith("...") and len(second[6]) < 100
    documents = [report.document(row, PRICES) for row in rows]
    assert [row["cost_usd"] for row in documents] == [None, None, None]
    assert [row["most_usd"] for row in documents] == [None, 2.254, None]
