"""A stack of managed jobs, orders and jobs of it, as several tests need them."""

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

from infra.jobs.options import RunOptions, RunOrder, resolve
from infra.jobs.service import CallerIdentity, JobPhase, JobState, ServiceJob
from infra.outputs.jobs import BudgetOutputs, JobMachineOutputs, JobOutputs, Person

ACCOUNT = "123456789012"
NOW = datetime.datetime(2026, 11, 26, 15, 30, 12, tzinfo=datetime.UTC)
CALLER = CallerIdentity(ACCOUNT, "ada")
ADA = Person(
    name="ada",
    email="ada@example.com",
    team="Vision Lab",
    folder="vision-lab",
    role=f"arn:aws:iam::{ACCOUNT}:role/small-aws-ada",
    job_roles={
        kind: f"arn:aws:iam::{ACCOUNT}:role/small-aws-{kind}-ada" for kind in ("training", "evaluation")
    },
)
BOB = Person(
    name="bob",
    email="bob@example.com",
    team="nlp",
    folder="nlp",
    role=f"arn:aws:iam::{ACCOUNT}:role/small-aws-bob",
)
OUTPUTS = JobOutputs(
    stack="small-aws",
    cloud="aws",
    region="us-west-2",
    profile="small",
    owner="ml@example.com",
    cost_center="ml-1",
    service="sagemaker",
    tracking_uri=f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:mlflow-app/app-ABCDEF123456",
    code_uri="s3://small-aws-artifacts/code",
    checkpoint_uri="s3://small-aws-checkpoints",
    dataset_uri="s3://small-aws-datasets",
    artifact_uri="s3://small-aws-artifacts",
    image=f"763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training@sha256:{'ab' * 32}",
    kms_key=f"arn:aws:kms:us-west-2:{ACCOUNT}:key/12345678-1234-1234-1234-123456789012",
    subnets=("subnet-0123456789abcdef0",),
    security_groups=("sg-0123456789abcdef0",),
    machines=(
        JobMachineOutputs(
            name="l4", machine="ml.g6.xlarge", purchase="spot", max_nodes=4, usd_per_hour=1.127
        ),
        JobMachineOutputs(
            name="cpu", machine="ml.m7i.xlarge", purchase="on_demand", max_nodes=2, usd_per_hour=0.25
        ),
        JobMachineOutputs(
            name="b200", machine="ml.p6-b200.48xlarge", purchase="on_demand", max_nodes=1, usd_per_hour=None
        ),
    ),
    max_hours=72,
    people=(ADA, BOB),
    budgets=(
        BudgetOutputs(
            name="small-aws-stack", scope="stack", value="small-aws", monthly_usd=5000, over_budget="warn"
        ),
        BudgetOutputs(
            name="small-aws-team", scope="team", value="Vision Lab", monthly_usd=1000, over_budget="warn"
        ),
        BudgetOutputs(
            name="small-aws-person", scope="person", value="ada", monthly_usd=100, over_budget="stop"
        ),
        BudgetOutputs(
            name="small-aws-person", scope="person", value="bob", monthly_usd=1, over_budget="stop"
        ),
    ),
    smoke=None,
)
OPTIONS = RunOptions(
    folder=Path("examples/finetune"), machine="l4", max_hours=2, person="ada", dataset="synthetic"
)


def order(**changes: Any) -> RunOrder:
    return resolve(OUTPUTS, replace(OPTIONS, **changes), CALLER)


def job(name: str = "small-aws-ada-finetune-261126-153012", **changes: Any) -> ServiceJob:
    """One of Ada's that has completed: an hour of one L4."""
    made = ServiceJob(
        name=name,
        stack="small-aws",
        person="ada",
        team="Vision Lab",
        machine="ml.g6.xlarge",
        nodes=1,
        spot=False,
        state=JobState.COMPLETED,
        phase=JobPhase.OVER,
        created=NOW,
        ended=NOW,
        max_run_s=7200,
        trained_s=3600,
        billed_s=3600,
    )
    return replace(made, **changes)
