"""A stack of managed jobs in the emulated SageMaker, S3 and CloudWatch Logs, whose jobs really run."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.jobs.aws.runs import SageMakerRuns
from infra.jobs.following import follow
from infra.jobs.options import RunOptions
from infra.jobs.service import ServiceJob
from infra.jobs.submission import Submission, prepare, start
from infra.outputs.jobs import JobOutputs
from tests.infra.jobs.samples import ACCOUNT, NOW, OPTIONS, OUTPUTS
from tests.rehearsal.jobs.aws import account as emulated


class Stack:
    """The service of a stack, a folder with a script, and the output of runs."""

    def __init__(self, account: emulated.Account, folder: Path) -> None:
        self.account, self.folder = account, folder
        self.reported: list[str] = []
        self.outputs = _outputs()
        self.options = replace(OPTIONS, folder=folder)
        self.service = self.service_at(account.services.aws.url)

    def service_at(self, url: str, **more: Any) -> SageMakerRuns:
        def client(service: str, region: str) -> Any:
            return emulated.boto3.client(
                service, region_name=region, endpoint_url=url, aws_access_key_id="rehearsal",
                aws_secret_access_key="rehearsal", **more,
            )  # fmt: skip

        return SageMakerRuns(client, self.outputs.stack, self.outputs.region)

    def prepared(self, script: str, **changes: Any) -> Submission:
        """A run whose nodes run the script itself, without the wrapper."""
        (self.folder / "train.py").write_text(script)
        options: RunOptions = replace(self.options, **changes)
        made = prepare(self.outputs, options, self.service, NOW)
        return replace(made, plan=replace(made.plan, command=("python3", "train.py")))

    def wrapped(self, script: str, **changes: Any) -> Submission:
        """A run as people start it."""
        (self.folder / "train.py").write_text(script)
        return prepare(self.outputs, replace(self.options, **changes), self.service, NOW)

    def started(self, script: str, **changes: Any) -> str:
        made = self.prepared(script, **changes)
        start(made, self.service, self.reported.append)
        return made.name

    def followed(self, name: str) -> ServiceJob:
        return follow(self.service, name, self.reported.append, time.sleep, look_s=0.05)

    @property
    def text(self) -> str:
        return "\n".join(self.reported)


def _outputs() -> JobOutputs:
    people = tuple(one.model_copy(update={"role": emulated.ROLE, "job_roles": {}}) for one in OUTPUTS.people)
    return OUTPUTS.model_copy(
        update={
            "region": emulated.REGION,
            "people": people,
            "code_uri": "s3://code-bucket/code",
            "artifact_uri": "s3://out-bucket",
            "checkpoint_uri": "s3://out-bucket",
            "kms_key": None,
            "subnets": (),
            "security_groups": (),
        }
    )


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    # The operator of a rehearsal is in this account, and the role has to be as well.
    monkeypatch.setattr(emulated, "ACCOUNT", ACCOUNT)
    monkeypatch.setattr(emulated, "ROLE", f"arn:aws:iam::{ACCOUNT}:role/trainer")
    home, folder = tmp_path / "home", tmp_path / "finetune"
    home.mkdir()
    folder.mkdir()
    account = emulated.Account(home)
    account.role(emulated.ENOUGH, arn=emulated.ROLE)
    yield Stack(account, folder)
    account.services.stop()
    account.state.close()
