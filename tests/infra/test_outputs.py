import pytest
from pydantic import ValidationError

from infra.outputs.cluster import KEY, ValidationRun, parse
from tests.trainstack.cli.test_access import EXPORTED


def test_a_stack_deployed_before_baselines_is_still_read() -> None:
    reported = ValidationRun.model_validate(
        {"job": "smoke", "namespace": "gate", "result_uri": "s3://b/r.json"}
    )
    assert reported.baseline_uri is None


def test_the_record_says_where_the_figures_of_an_accepted_run_are() -> None:
    reported = ValidationRun(
        job="smoke", namespace="gate", result_uri="s3://b/r.json", baseline_uri="s3://b/r.baseline.json"
    )
    assert ValidationRun.model_validate(reported.model_dump()).baseline_uri == "s3://b/r.baseline.json"
    with pytest.raises(ValidationError, match="extra"):
        ValidationRun.model_validate({**reported.model_dump(), "surprise": 1})


def test_a_stack_deployed_when_one_pool_was_validated_is_still_read() -> None:
    reported = EXPORTED.model_dump(mode="json")
    assert parse({KEY: reported}) == EXPORTED
    for smoke, runs in ((None, 0), ({"job": "j", "namespace": "n", "result_uri": "s3://b/r.json"}, 1)):
        old = parse({KEY: {**reported, "schema_version": "trainstack.outputs/1", "smoke": smoke}})
        assert (len(old.smoke), old.teams) == (runs, EXPORTED.teams)
