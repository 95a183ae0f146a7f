"""Quotas and limits of the account, which a run is held against before anything is started."""

from dataclasses import replace
from typing import Any

import pytest

from infra.errors import UserError
from infra.jobs.aws.runs import SageMakerRuns
from infra.jobs.submission import start
from tests.infra.jobs.conftest import Stack
from tests.infra.jobs.test_tuning import SEARCH
from tests.trainstack.preflight.aws.asking import Answering, Refusal

HELLO = "print('hello')"
FOREVER = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.05)"
WARM = "ml.g6.xlarge for training warm pool usage"


@pytest.mark.parametrize("spot", [True, False])
def test_a_quota_of_zero_is_named_with_the_way_to_ask_for_more(stack: Stack, spot: bool) -> None:
    name = f"ml.g6.xlarge for {'spot ' if spot else ''}training job usage"
    stack.account.faults(quotas={name: 0})
    made = stack.prepared(HELLO, spot=spot)
    with pytest.raises(UserError) as caught:
        start(made, stack.service, stack.reported.append)
    said = str(caught.value)
    assert "[quota-exceeded]" in said
    assert f"QuotaName=='{name}'" in said and "--desired-value 1" in said
    assert stack.service.job(made.name) is None


@pytest.mark.parametrize(
    ("quotas", "changes", "asked"),
    [
        ({"sagemaker_run_seconds": 432_000}, {"max_hours": 200.0}, ("L-33A961FD", "--desired-value 720000")),
        ({"sagemaker_spot_training_instances": 1}, {"nodes": 2}, ("L-93958082", "--desired-value 2")),
        ({"sagemaker_instances_per_spot_job": 1}, {"nodes": 2}, ("L-DB62C864", "--desired-value 2")),
    ],
)
def test_a_limit_of_the_account_is_asked_by_the_amount_that_is_wanted(
    stack: Stack, quotas: dict[str, float], changes: dict[str, Any], asked: tuple[str, str]
) -> None:
    stack.outputs = stack.outputs.model_copy(update={"max_hours": 28 * 24, "budgets": ()})
    stack.account.faults(quotas=quotas)
    with pytest.raises(UserError) as caught:
        start(stack.prepared(HELLO, **changes), stack.service, stack.reported.append)
    assert "[quota-exceeded]" in str(caught.value) and all(one in str(caught.value) for one in asked)


def test_machines_that_the_account_would_not_keep_are_refused_before_anything_runs(stack: Stack) -> None:
    """Developer guide, train-warm-pools-resource-limits: the job runs, and no warm pool is retained."""
    stack.account.faults(quotas={WARM: 1})
    with pytest.raises(UserError) as caught:
        stack.prepared(HELLO, spot=False, keep_warm_minutes=30, nodes=2)
    said = str(caught.value)
    assert "[keep-warm-without-quota]" in said and WARM in said and "--desired-value 2" in said
    assert stack.prepared(HELLO, spot=False, keep_warm_minutes=30).kept_warm == "30 min"
    assert stack.prepared(HELLO, spot=False).kept_warm == ""


@pytest.mark.parametrize(
    ("code", "said"), [("AccessDeniedException", "may not"), ("TooManyRequestsException", "TooManyRequests")]
)
def test_a_quota_of_warm_pools_that_is_not_read_is_reported_with_the_reason(
    stack: Stack, code: str, said: str
) -> None:
    stack.service = _without_quotas(stack, code)
    kept = stack.prepared(HELLO, spot=False, keep_warm_minutes=30).kept_warm
    assert WARM in kept and said in kept


def test_an_expired_login_is_not_a_missing_right_to_quotas(stack: Stack) -> None:
    stack.service = _without_quotas(stack, "ExpiredTokenException")
    with pytest.raises(UserError) as caught:
        stack.prepared(HELLO, spot=False, keep_warm_minutes=30)
    assert "[not-logged-in]" in str(caught.value)


def _without_quotas(stack: Stack, code: str) -> SageMakerRuns:
    known = stack.service._clients

    def refusing(service: str, region: str) -> Any:
        if service != "service-quotas":
            return known(service, region)
        return Answering(list_service_quotas=Refusal(code))(service, region)

    return SageMakerRuns(refusing, stack.outputs.stack, stack.outputs.region)


@pytest.mark.parametrize(
    ("quotas", "parallel", "asked"),
    [({"sagemaker_trials_at_once": 10}, 11, "--desired-value 11")],
)
def test_a_search_above_a_limit_of_the_account_is_refused_with_the_request(
    stack: Stack, quotas: dict[str, float], parallel: int, asked: str
) -> None:
    stack.account.faults(quotas=quotas)
    stack.outputs = stack.outputs.model_copy(update={"budgets": ()})
    made = stack.prepared(HELLO, tune=replace(SEARCH, trials=20, parallel=parallel))
    with pytest.raises(UserError) as caught:
        start(made, stack.service, stack.reported.append)
    assert "[quota-exceeded]" in str(caught.value) and asked in str(caught.value)


def test_what_others_use_is_part_of_the_request_for_more(stack: Stack) -> None:
    stack.account.faults(quotas={"ml.g6.xlarge for spot training job usage": 3})
    running = stack.started(FOREVER, nodes=2)
    made = replace(stack.prepared(HELLO, nodes=2, task="other"), name="second")
    place = made.plan.sagemaker
    assert place is not None
    made = replace(made, plan=replace(made.plan, sagemaker=replace(place, job_name="second")))
    with pytest.raises(UserError) as caught:
        start(made, stack.service, stack.reported.append)
    assert "--desired-value 4" in str(caught.value) and "2 are in use" in str(caught.value)
    stack.service.stop(running)
    stack.followed(running)
