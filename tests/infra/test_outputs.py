import pytest
from pydantic import ValidationError

from infra.outputs import Smoke


def test_a_stack_deployed_before_baselines_is_still_read() -> None:
    told = Smoke.model_validate({"job": "smoke", "namespace": "gate", "result_uri": "s3://b/r.json"})
    assert told.baseline_uri is None


def test_the_record_says_where_the_figures_of_an_accepted_run_are() -> None:
    told = Smoke(
        job="smoke", namespace="gate", result_uri="s3://b/r.json", baseline_uri="s3://b/r.baseline.json"
    )
    assert Smoke.model_validate(told.model_dump()).baseline_uri == "s3://b/r.baseline.json"
    with pytest.raises(ValidationError, match="extra"):
        Smoke.model_validate({**told.model_dump(), "surprise": 1})
