"""Packages that a training job installs."""

from pathlib import Path

from tests.rehearsal.jobs import installing
from tests.rehearsal.jobs.aws.account import Account


def test_requirements_are_installed_into_the_job_for_all_its_processes(
    account: Account, tmp_path: Path
) -> None:
    before = installing.version()
    for name, content in installing.files(tmp_path / "job").items():
        account.client("s3").put_object(Bucket="code-bucket", Key=f"code/{name}", Body=content)
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://code-bucket/code/"}
    command = f"python3 {installing.ARCHIVE} job"
    account.start(
        script=installing.start("/opt/ml/input/data/code", command, TRAINSTACK_GPUS="2"),
        InputDataConfig=[{"ChannelName": "code", "DataSource": {"S3DataSource": source}}],
        StoppingCondition={"MaxRuntimeInSeconds": 300},
    )
    found = account.ended("job-1", 150)
    events = account.client("logs").filter_log_events(logGroupName="/aws/sagemaker/TrainingJobs")["events"]
    said = [event["message"] for event in events]
    assert found["TrainingJobStatus"] == "Completed", said
    assert {"rank 0 has 42 0.1", "rank 1 has 42 0.1"} <= set(said)
    assert installing.version() == before
