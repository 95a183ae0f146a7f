import pytest
from pydantic import ValidationError

from infra.outputs.cluster import KEY, ValidationRun, parse
from tests.trainstack.cli.test_access import EXPORTED


def test_a_stack_deployed_before_baselines_is_still_read() -> None:
    told = ValidationRun.model_validate({"job": "smoke", "namespace": "gate", "result_uri": "s3://b/r.json"})
    assert told.baseline_uri is None


def test_the_record_says_where_the_figures_of_an_accepted_run_are() -> None:
    told = ValidationRun(
        job="smoke", namespace="gate", result_uri="s3://b/r.json", baseline_uri="s3://b/r.baseline.json"
    )
    assert ValidationRun.model_validate(told.model_dump()).baseline_uri == "s3://b/r.baseline.json"
    with pytest.raises(ValidationError, match="extra"):
        ValidationRun.model_validate({**told.model_dump(), "surprise": 1})


def test_a_stack_deployed_when_one_pool_was_validated_is_still_read() -> None:
    told = EXPORTED.model_dump(mode="json")
    assert parse({KEY: told}) == EXPORTED
    for smoke, runs in ((None, 0), ({"job": "j", "namespace": "n", "result_uri": "s3://b/r.json"}, 1)):
        old = parse({KEY: {**told, "schema_version": "trainstack.outputs/1", "smoke": smoke}})
        assert (len(old.smoke), old.teams) == (runs, EXPORTED.teams)
