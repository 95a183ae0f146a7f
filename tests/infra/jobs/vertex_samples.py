"""A stack of Vertex AI's jobs in the emulated Google Cloud of a test, and its service."""

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

from infra.jobs.options import RunOptions
from infra.outputs.jobs import JobMachineOutputs, JobOutputs, Person
from tests.infra.jobs import samples
from tests.rehearsal.jobs.gcp.conftest import PROJECT, REGION, TRAINER

NOW = datetime.datetime(2026, 11, 26, 15, 30, 12, tzinfo=datetime.UTC)
ADA = Person(name="ada", email="ada@example.com", team="Vision Lab", folder="vision-lab", role=TRAINER)
OUTPUTS = JobOutputs(
    **{
        **samples.OUTPUTS.model_dump(),
        "stack": "small-gcp",
        "cloud": "gcp",
        "region": REGION,
        "service": "vertex",
        "tracking_uri": "",
        "code_uri": "gs://code-bucket/code",
        "checkpoint_uri": "gs://runs-bucket",
        "dataset_uri": "gs://code-bucket/data",
        "artifact_uri": "gs://runs-bucket",
        "image": f"us-docker.pkg.dev/{PROJECT}/images/torch@sha256:{'ab' * 32}",
        "kms_key": None,
        "subnets": (),
        "security_groups": (),
        "machines": (
            JobMachineOutputs(
                name="l4", machine="g2-standard-8", purchase="spot", max_nodes=4, usd_per_hour=0.98
            ),
            JobMachineOutputs(
                name="cpu", machine="e2-standard-4", purchase="on_demand", max_nodes=2, usd_per_hour=0.15
            ),
        ),
        "people": (ADA,),
        "budgets": (),
    }
)


def options(folder: Path, **changes: Any) -> RunOptions:
    made = RunOptions(folder=folder, machine="cpu", max_hours=0.1, dataset="synthetic")
    return replace(made, **changes)
