"""Training jobs that run, as an operator with boto3 sees them: states, files, ends."""

import io
import json
import tarfile
import time
from typing import Any

import psutil
import pytest

from tests.rehearsal.jobs.aws.account import ENOUGH, REGION, ROLE, Account

GROUP = "/aws/sagemaker/TrainingJobs"
SPOT: dict[str, Any] = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60},
}
CHECKPOINTS: dict[str, Any] = {"CheckpointConfig": {"S3Uri": "s3://out-bucket/checkpoints/run"}}


def logged(account: Account, name: str = "job-1") -> list[str]:
    """What all machines of a job wrote."""
    found = account.client("logs").filter_log_events(logGroupName=GROUP, logStreamNamePrefix=f"{name}/")
    return [event["message"] for event in found["events"]]


def states(found: dict[str, Any]) -> list[str]:
    return [row["Status"] for row in found["SecondaryStatusTransitions"]]


def channel(name: str, uri: str, **more: Any) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, **more}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def machines(count: int) -> dict[str, Any]:
    return {"InstanceType": "ml.g6.xlarge", "InstanceCount": count, "VolumeSizeInGB": 10}


def put(account: Account, key: str, content: bytes = b"x", bucket: str = "code-bucket") -> None:
    account.client("s3").put_object(Bucket=bucket, Key=key, Body=content)


def test_a_job_runs_its_command_and_logs(account: Account) -> None:
    found = account.run(script="echo hello from $TRAINING_JOB_NAME in $AWS_REGION")
    assert found["TrainingJobStatus"] == found["SecondaryStatus"] == "Completed", found
    assert states(found) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert found["TrainingStartTime"] <= found["TrainingEndTime"]
    assert found["BillableTimeInSeconds"] == found["TrainingTimeInSeconds"] >= 1
    assert logged(account) == [f"hello from job-1 in {REGION}"]


def test_the_input_of_a_program_is_where_the_service_puts_it(account: Account) -> None:
    put(account, "code/abc/code.tar.gz", b"packed")
    put(account, "code/abc/deep/more.txt", b"more")
    put(account, "code/abcd/other", b"of another prefix")
    account.run(
        script="cd /opt/ml/input; cat data/code/code.tar.gz data/code/deep/more.txt; echo; ls data/code; "
        "cat config/*.json",
        InputDataConfig=[channel("code", "s3://code-bucket/code/abc/")],
        HyperParameters={"rate": "0.1"},
    )
    content, *rest = logged(account)
    assert content == "packedmore"
    assert rest[:2] == ["code.tar.gz", "deep"]
    parsed = json.JSONDecoder()
    text, found = "".join(rest[2:]), []
    while text:
        value, end = parsed.raw_decode(text)
        found.append(value)
        text = text[end:]
    parameters, channels, resources = found
    assert parameters == {"rate": "0.1"}
    assert channels["code"]["TrainingInputMode"] == "File"
    assert resources["current_host"] in resources["hosts"]
    assert resources["current_instance_type"] == "ml.g6.xlarge"


def test_hosts_have_addresses_and_meet(account: Account) -> None:
    meeting = (
        "import json, os, socket\n"
        "place = json.load(open('/opt/ml/input/config/resourceconfig.json'.replace("
        "'/opt/ml', os.environ['SAGEMAKER_BASE_DIR'])))\n"
        "me, first = place['current_host'], place['hosts'][0]\n"
        "if me == first:\n"
        "    server = socket.create_server((me, 7777)); print('got', server.accept()[0].recv(9).decode())\n"
        "else:\n"
        "    import time\n"
        "    for _ in range(100):\n"
        "        try:\n"
        "            socket.create_connection((first, 7777)).sendall(b'the other'); print('said'); break\n"
        "        except OSError: time.sleep(0.05)\n"
    )
    put(account, "program/meet.py", meeting.encode())
    found = account.run(
        script="python3 /opt/ml/input/data/program/meet.py",
        InputDataConfig=[channel("program", "s3://code-bucket/program")],
        ResourceConfig=machines(2),
    )
    assert found["TrainingJobStatus"] == "Completed", found
    assert sorted(logged(account)) == ["got the other", "said"]
    streams = account.client("logs").describe_log_streams(logGroupName=GROUP)["logStreams"]
    assert [one["logStreamName"].rpartition("-")[0] for one in streams] == ["job-1/algo-1", "job-1/algo-2"]


def test_shards_go_to_one_host_each(account: Account) -> None:
    for name in "abc":
        put(account, f"shards/{name}")
    account.run(
        script="ls /opt/ml/input/data/part | tr '\\n' ' '",
        InputDataConfig=[
            channel("part", "s3://code-bucket/shards/", S3DataDistributionType="ShardedByS3Key")
        ],
        ResourceConfig=machines(2),
    )
    assert sorted(line.split() for line in logged(account)) == [["a", "c"], ["b"]]


def test_models_and_outputs_of_all_hosts_are_packed(account: Account) -> None:
    found = account.run(
        script="touch /opt/ml/model/$HOSTNAME; echo data > /opt/ml/output/data/result",
        ResourceConfig=machines(2),
    )
    assert found["ModelArtifacts"] == {"S3ModelArtifacts": "s3://out-bucket/runs/job-1/output/model.tar.gz"}
    body = account.client("s3").get_object(Bucket="out-bucket", Key="runs/job-1/output/model.tar.gz")["Body"]
    with tarfile.open(fileobj=io.BytesIO(body.read())) as packed:
        assert sorted(packed.getnames()) == ["algo-1", "algo-2"]
    assert account.file("out-bucket", "runs/job-1/output/output.tar.gz").exists()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "AlgorithmError: , exit code: 3"),
        ("echo bad data > /opt/ml/output/failure; exit 1", "AlgorithmError: bad data, exit code: 1"),
        ("kill -9 $$", "AlgorithmError: , exit code: 137"),
    ],
)
def test_a_program_that_fails(account: Account, script: str, reason: str) -> None:
    found = account.run(script=script)
    assert (found["TrainingJobStatus"], found["FailureReason"]) == ("Failed", reason)
    assert states(found)[-2:] == ["Training", "Failed"]


def test_one_failing_host_ends_the_others(account: Account) -> None:
    began = time.monotonic()
    found = account.run(script="[ $HOSTNAME = algo-2 ] && exit 7; sleep 50", ResourceConfig=machines(2))
    assert found["FailureReason"] == "AlgorithmError: , exit code: 7"
    assert time.monotonic() - began < 20


def test_a_long_reason_is_cut_with_its_exit_code(account: Account) -> None:
    found = account.run(script="printf 'x%.0s' $(seq 3000) > /opt/ml/output/failure; exit 1")
    assert len(found["FailureReason"]) == 1024
    assert found["FailureReason"].endswith("x, exit code: 1")


def test_an_entrypoint_of_the_image_is_refused(account: Account) -> None:
    algorithm = {"TrainingImage": "image", "TrainingInputMode": "File"}
    found = account.run(AlgorithmSpecification=algorithm)
    assert found["TrainingJobStatus"] == "Failed"
    assert "entrypoint" in found["FailureReason"]


def test_stopping_sends_sigterm_and_uploads(account: Account) -> None:
    account.start(script="trap 'echo saved > /opt/ml/model/kept; exit 0' TERM; echo ready; sleep 60 & wait")
    account.reached("job-1", {"Training"})
    while not (account.home / "logs").exists() or "ready" not in logged(account):
        time.sleep(0.05)
    account.client("sagemaker").stop_training_job(TrainingJobName="job-1")
    found = account.ended("job-1")
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert "Stopping" in states(found)
    assert account.file("out-bucket", "runs/job-1/output/model.tar.gz").exists()
    with pytest.raises(Exception, match="is in status Stopped"):
        account.client("sagemaker").stop_training_job(TrainingJobName="job-1")


def test_a_program_that_ignores_sigterm_is_killed(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rehearsal.jobs.aws.sagemaker.host.GRACE_S", 0.3)
    account.start(script="trap '' TERM; sleep 60 & while true; do wait; done")
    account.reached("job-1", {"Training"})
    account.client("sagemaker").stop_training_job(TrainingJobName="job-1")
    assert account.ended("job-1", 10)["TrainingJobStatus"] == "Stopped"


def test_a_job_is_stopped_before_it_has_machines(account: Account) -> None:
    account.faults(faults=[{"on": "aws:sagemaker/trainingJob", "kind": "slow", "seconds": 60}], run="1")
    account.start()
    account.client("sagemaker").stop_training_job(TrainingJobName="job-1")
    found = account.ended("job-1", 10)
    assert found["TrainingJobStatus"] == "Stopped"
    assert "TrainingStartTime" not in found


def test_channels_that_are_empty_or_piped(account: Account) -> None:
    found = account.run(InputDataConfig=[channel("code", "s3://code-bucket/nothing/")])
    assert 'No S3 objects found under S3 URL "s3://code-bucket/nothing/"' in found["FailureReason"]
    put(account, "a")
    piped = {**channel("code", "s3://code-bucket/a"), "InputMode": "Pipe"}
    assert "Pipe mode" in account.run("job-2", InputDataConfig=[piped])["FailureReason"]


def test_a_job_that_takes_too_long_is_stopped(account: Account) -> None:
    found = account.run(script="sleep 60", StoppingCondition={"MaxRuntimeInSeconds": 1})
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


def test_an_interrupted_spot_job_goes_on_from_its_checkpoints(account: Account) -> None:
    script = (
        "cd /opt/ml/checkpoints; if [ -f step ]; then echo resumed from $(cat step); exit 0; fi; "
        "echo started; echo 41 > new; mv new step; sleep 50"
    )
    name = account.start(script=script, **SPOT, **CHECKPOINTS)
    stored = account.file("out-bucket", "checkpoints/run/step")
    deadline = time.monotonic() + 30
    while not stored.exists():  # a reclaimed machine stores nothing more
        assert time.monotonic() < deadline
        time.sleep(0.05)
    account.faults(interruptions=[{"seconds": 0.01}], run="1")
    found = account.ended(name)
    assert found["TrainingJobStatus"] == "Completed", found
    again = ["Starting", "Downloading", "Training"]
    assert states(found) == [*again, "Interrupted", *again, "Uploading", "Completed"]
    assert logged(account) == ["started", "resumed from 41"]


def test_an_interruption_is_not_for_jobs_on_demand(account: Account) -> None:
    account.faults(interruptions=[{"seconds": 0.1}], run="1")
    assert "Interrupted" not in states(account.run(script="sleep 1"))
    assert "Interrupted" in states(account.run("job-2", script="sleep 3", **SPOT))
    assert "Interrupted" not in states(account.run("job-3", script="sleep 1", **SPOT))


def test_a_spot_job_that_waits_too_long(account: Account) -> None:
    condition = {"StoppingCondition": {"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 1}}
    account.faults(faults=[{"on": "aws:sagemaker/trainingJob", "kind": "slow", "seconds": 1.2}], run="1")
    found = account.run(script="sleep 60", **{**SPOT, **condition})
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("Stopped", "MaxWaitTimeExceeded")


def test_checkpoints_are_copied_while_a_job_runs_and_deleted_with_their_files(account: Account) -> None:
    script = (
        "cd /opt/ml/checkpoints; mkdir a; echo 1 > a/old; echo 2 > new; sleep 2; rm a/old; "
        "until [ -f /opt/ml/input/data/never ]; do sleep 0.1; done"
    )
    account.start(script=script, **CHECKPOINTS)
    deadline = time.monotonic() + 20
    old, new = (account.file("out-bucket", f"checkpoints/run/{name}") for name in ("a/old", "new"))
    while not (old.exists() and new.exists()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    while old.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    account.client("sagemaker").stop_training_job(TrainingJobName="job-1")
    account.ended("job-1")
    assert new.read_text() == "2\n"


def test_without_machines_a_job_fails(account: Account) -> None:
    account.faults(faults=[{"on": "aws:sagemaker/trainingJob", "kind": "capacity"}], run="1")
    found = account.run()
    assert found["FailureReason"].startswith(
        "CapacityError: Unable to provision requested ML compute capacity."
    )
    assert "TrainingStartTime" not in found


def without(action: str) -> dict[str, Any]:
    return {**ENOUGH, "Action": [one for one in ENOUGH["Action"] if one != action]}


@pytest.mark.parametrize("action", ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"])
def test_a_role_without_a_right_fails_the_job(account: Account, action: str) -> None:
    put(account, "code/file")
    account.role(without(action))
    found = account.run(
        script="cd /opt/ml/checkpoints; touch one; sleep 1.5; rm one",
        InputDataConfig=[channel("code", "s3://code-bucket/code/")],
        **CHECKPOINTS,
    )
    assert found["TrainingJobStatus"] == "Failed"
    assert found["FailureReason"].startswith("ClientError: ")
    assert f"is not authorized to perform: {action}" in found["FailureReason"]


def test_the_key_of_a_bucket_needs_its_own_grant(account: Account) -> None:
    key = f"arn:aws:kms:{REGION}:210987654321:key/1"
    account.add("aws:kms/key:Key", "1", arn=key)
    rule = {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": key}}
    account.add(
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "encryption",
        {"bucket": "out-bucket", "rules": [rule]},
    )
    script = "touch /opt/ml/model/m"
    assert "kms:GenerateDataKey" in account.run(script=script)["FailureReason"]
    through = {"StringEquals": {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}}
    grant = {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": key, "Condition": through}
    account.role(ENOUGH, grant)
    assert account.run("job-2", script=script)["TrainingJobStatus"] == "Completed"


def test_programs_call_with_the_rights_of_their_role(account: Account) -> None:
    program = (
        "import boto3\n"
        "print(boto3.client('sts').get_caller_identity()['Arn'])\n"
        "s3 = boto3.client('s3')\n"
        "s3.put_object(Bucket='out-bucket', Key='mine', Body=b'1')\n"
        "try: s3.list_objects_v2(Bucket='other-bucket')\n"
        "except Exception as error: print(error)\n"
    )
    put(account, "program/call.py", program.encode())
    account.run(
        script="python3 /opt/ml/input/data/program/call.py",
        InputDataConfig=[channel("program", "s3://code-bucket/program/")],
    )
    who, denied = logged(account)
    assert who == f"arn:aws:sts::{ROLE.split(':')[4]}:assumed-role/trainer/SageMaker"
    assert "AccessDenied" in denied and "s3:ListBucket" in denied
    assert account.file("out-bucket", "mine").read_text() == "1"


def test_nothing_is_left_of_a_job(account: Account) -> None:
    account.start(script="sleep 100 & sleep 100")
    account.reached("job-1", {"Training"})
    (row,) = account.services.live_workloads()
    assert row["kind"] == "TrainingJob" and row["pids"]
    account.services.stop()
    assert not [pid for pid in row["pids"] if psutil.pid_exists(pid)]
    assert not (account.home / "jobs" / "210987654321" / REGION / "job-1").exists()
