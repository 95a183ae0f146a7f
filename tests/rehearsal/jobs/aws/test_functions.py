"""Lambda functions whose Python runs."""

import base64
import json
import time
from typing import Any

import pytest

from rehearsal.core.validate import SIGNATURE
from tests.rehearsal.jobs.aws.account import ACCOUNT, ENOUGH, REGION, Account

ARCHIVE, ASSET = "0def7320c3a5731c473e5ecbe6d01bc7", "c44067f5952c0a294b673a41bacd8c17"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/stopper"
TRUST = {
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]
}


def function(account: Account, code: str, **inputs: Any) -> None:
    """A function `stop` with this text as `main.py`."""
    account.role(
        {"Effect": "Allow", "Action": "sagemaker:*TrainingJob*", "Resource": "*"}, arn=ROLE, trust=TRUST
    )
    assets = {"main.py": {SIGNATURE: ASSET, "text": code}}
    account.add(
        "aws:lambda/function:Function",
        "stop",
        {
            "code": {SIGNATURE: ARCHIVE, "assets": assets},
            "handler": "main.handler",
            "runtime": "python3.12",
            "role": ROLE,
            **inputs,
        },
        name="stop",
        arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:stop",
    )


def call(account: Account, event: Any = None, **more: Any) -> tuple[Any, dict[str, Any]]:
    answer = account.client("lambda").invoke(FunctionName="stop", Payload=json.dumps(event), **more)
    return json.loads(answer["Payload"].read() or b"null"), answer


def test_a_handler_gets_its_event_and_its_environment(account: Account) -> None:
    code = (
        "import os\n"
        "def handler(event, context):\n"
        "    print('called')\n"
        "    return {'event': event, 'limit': os.environ['LIMIT'], 'name': context.function_name}\n"
    )
    function(account, code, environment={"variables": {"LIMIT": "5"}})
    found, answer = call(account, {"spent": 7}, LogType="Tail")
    assert found == {"event": {"spent": 7}, "limit": "5", "name": "stop"}
    assert "FunctionError" not in answer
    assert base64.b64decode(answer["LogResult"]) == b"called"
    logs = account.client("logs").filter_log_events(logGroupName="/aws/lambda/stop")
    assert [event["message"] for event in logs["events"]] == ["called"]


def test_an_error_has_the_services_form(account: Account) -> None:
    function(account, "def handler(event, context): raise ValueError('no budget')")
    found, answer = call(account)
    assert answer["StatusCode"] == 200 and answer["FunctionError"] == "Unhandled"
    assert (found["errorType"], found["errorMessage"]) == ("ValueError", "no budget")


def test_a_function_that_takes_too_long(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rehearsal.jobs.aws.functions.invoke._INITIALISE_S", 0.5)
    function(account, "import time\ndef handler(event, context): time.sleep(60)", timeout=1)
    found, answer = call(account)
    assert answer["FunctionError"] == "Unhandled"
    assert "Task timed out after 1.00 seconds" in found["errorMessage"]


def test_a_function_acts_with_the_rights_of_its_role(account: Account) -> None:
    code = (
        "import boto3\n"
        "def handler(event, context):\n"
        "    client = boto3.client('sagemaker')\n"
        "    for job in client.list_training_jobs(StatusEquals='InProgress')['TrainingJobSummaries']:\n"
        "        client.stop_training_job(TrainingJobName=job['TrainingJobName'])\n"
        "    try: client.list_apps()\n"
        "    except Exception as error: return str(error)\n"
    )
    function(account, code, timeout=60)
    account.role(ENOUGH)
    account.start("job-1", "sleep 60")
    account.reached("job-1", {"Training"})
    found, _ = call(account)
    assert "assumed-role/stopper/stop is not authorized to perform: sagemaker:ListApps" in found
    assert account.ended("job-1")["TrainingJobStatus"] == "Stopped"


def test_an_asynchronous_call_is_listed_while_it_runs(account: Account) -> None:
    file = account.home / "go"
    code = (
        "import pathlib, time\n"
        "def handler(event, context):\n"
        f"    while not pathlib.Path({str(file)!r}).exists(): time.sleep(0.05)\n"
    )
    function(account, code, timeout=60)
    answer = account.client("lambda").invoke(FunctionName="stop", InvocationType="Event", Payload="{}")
    assert answer["StatusCode"] == 202
    deadline = time.monotonic() + 20
    while not (rows := account.services.live_workloads()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [(row["kind"], row["name"]) for row in rows] == [("Function", "stop")]
    file.touch()
    while account.services.live_workloads():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_functions_that_do_not_exist_or_are_not_python(account: Account) -> None:
    client = account.client("lambda")
    with pytest.raises(client.exceptions.ResourceNotFoundException, match="Function not found"):
        client.invoke(FunctionName="nothing")
    function(account, "", runtime="nodejs22.x")
    with pytest.raises(client.exceptions.InvalidRuntimeException, match="Python only"):
        client.invoke(FunctionName="stop")


def test_a_role_that_lambda_may_not_assume(account: Account) -> None:
    function(account, "def handler(event, context): return 1")
    account.role(arn=ROLE)
    client = account.client("lambda")
    with pytest.raises(client.exceptions.InvalidParameterValueException, match="cannot be assumed"):
        client.invoke(FunctionName="stop")
