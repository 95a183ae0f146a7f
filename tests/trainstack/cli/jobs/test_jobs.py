"""`trainstack run`, `runs` and `stop` through the real door of a rehearsal: daemon, services, processes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.engine.golang import ROOT
from infra.errors import UserError
from infra.jobs import plan
from infra.outputs.jobs import JobOutputs
from rehearsal.client import Rehearsal
from rehearsal.core import faults as faults_of
from rehearsal.core.state import State
from tests.infra.jobs.samples import ACCOUNT, OUTPUTS
from tests.rehearsal.jobs.aws import account as emulated
from tests.trainstack.cli.command import run
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli.jobs import opened
from trainstack.cli.jobs import run as command

FOREVER = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.05)\n"
WORDS = (
    "-s",
    "small-aws",
    "--rehearse",
    "--on",
    "l4",
    "--max-hours",
    "1",
    "--as",
    "ada",
    "--dataset",
    "none",
)


@dataclass
class Door:
    """A rehearsal with buckets and a role, whose stack has these outputs."""

    home: Path
    folder: Path
    outputs: JobOutputs
    opened: list[Rehearsal] = field(default_factory=list)

    def run(self, script: str, *words: str) -> tuple[int, str]:
        (self.folder / "train.py").write_text(script)
        return run("run", str(self.folder), *WORDS, *words)

    def session(self, stack: str, *, rehearse: bool, faults: Any = ()) -> Any:
        record = SimpleNamespace(value=self.outputs.model_dump(mode="json"))
        rehearsal = Rehearsal(self.home) if rehearse else None
        return SimpleNamespace(
            engine=SimpleNamespace(outputs=lambda: {"trainstack": record}),
            rehearsal=rehearsal,
            faults=faults_of.parse(faults, None),
        )


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    role = f"arn:aws:iam::{ACCOUNT}:role/trainer"
    monkeypatch.setattr(emulated, "ACCOUNT", ACCOUNT)
    home, folder = tmp_path / "home", tmp_path / "finetune"
    folder.mkdir()
    Rehearsal(home).environment()
    account = emulated.Account.__new__(emulated.Account)  # the daemon serves, not this process
    account.home, account.state = home, State(home / "state.sqlite")
    for name in emulated.BUCKETS:
        account.add("aws:s3/bucket:Bucket", name)
    account.role(emulated.ENOUGH, arn=role)
    account.state.close()
    people = tuple(one.model_copy(update={"role": role, "job_roles": {}}) for one in OUTPUTS.people)
    stores = {
        "code_uri": "s3://code-bucket/code",
        "artifact_uri": "s3://out-bucket",
        "checkpoint_uri": "s3://out-bucket",
    }
    bare: dict[str, Any] = {"kms_key": None, "subnets": (), "security_groups": (), "people": people}
    made = Door(home, folder, OUTPUTS.model_copy(update={**stores, **bare, "region": emulated.REGION}))
    monkeypatch.setattr(opened, "open_session", made.session)
    # What is tested here is not the wrapper around the script.
    monkeypatch.setattr(plan, "COMMAND", ("python3", "train.py"))
    yield made
    Rehearsal(home).stop()


def name_in(said: str) -> str:
    return next(line.split()[1] for line in said.splitlines() if line.startswith("run  "))


def test_a_run_from_its_price_to_its_verdict_and_the_table(door: Door) -> None:
    code, said = door.run("print('training')")
    assert code == 0, said
    assert "price      at most $1.13 (1 x 1 h x $1.127)" in said
    assert "budget     person ada: $0.00 of $100.00 spent this month, $1.13 at most with this run" in said
    assert "code       sent to s3://code-bucket/code/" in said
    assert "\ntraining\n" in said and f"COMPLETED  {name_in(said)}" in said
    code, table = run("runs", "-s", "small-aws", "--rehearse")
    assert code == 0 and table.splitlines()[1].startswith(name_in(said)) and "completed" in table
    assert "No runs yet" in run("runs", "-s", "small-aws", "--rehearse", "--person", "bob")[1]


def test_a_search_shows_the_price_of_all_its_trials_and_its_best_one(door: Door) -> None:
    (door.folder / "sweep.toml").write_text(
        """trials = 2
[objective]
metric = "loss"
regex = "loss ([0-9.]+)"
goal = "minimize"
[parameters]
lr = {values = [0.5]}
"""
    )
    code, said = door.run("print('loss 0.5')", "--tune", "sweep.toml")
    assert code == 0, said
    assert "price      at most $2.25 (2 trials x 1 x 1 h x $1.127)" in said
    assert "search     minimize loss over lr: 2 trials at most, 1 at a time" in said
    assert f"\nbest         loss 0.5 by {name_in(said)}-00" in said and "(lr 0.5)" in said
    _, table = run("runs", "-s", "small-aws", "--rehearse")
    assert table.count(name_in(said)) >= 3 and "its trials" in table
    with pytest.raises(UserError, match="--tune: is no file of"):
        door.run("print('loss 0.5')", "--tune", "none.toml")


def test_the_documented_transcript_has_the_lines_of_a_run(door: Door) -> None:
    """Beside those of the script; in a stack with its key, people and budgets the values are others."""

    def labels(text: str) -> list[str]:
        lines = [line for line in text.splitlines() if line.strip()]
        phases = [" ".join(line.split(" (")[0].split()[2:]) for line in lines if line.startswith("---")]
        shown = [line.split()[0] for line in lines if re.match(r"[A-Za-z]+ {2,}", line)]
        return [*dict.fromkeys(shown), *phases]

    documented = (ROOT / "docs" / "how-to" / "jobs.md").read_text().split("```")[3]
    assert labels(documented) == labels(door.run("print('training')")[1])


def test_a_failed_script_is_exit_code_1(door: Door) -> None:
    code, said = door.run("raise SystemExit(3)")
    assert code == 1 and "FAILED" in said and "exit code: 3" in said


def test_ctrl_c_leaves_the_run_and_says_how_to_stop_it(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command, "sleep", interrupted)
        code, said = door.run(FOREVER)
    assert code == 130
    stop = f"trainstack stop {name_in(said)} -s small-aws --rehearse"
    assert "The run goes on, and is billed." in said and f"`{stop}` stops it" in said
    code, ended = run(*stop.split()[1:], "--yes")
    assert code == 0 and f"STOPPED  {name_in(said)}: by somebody" in ended
    assert "checkpoints  s3://out-bucket/teams/vision-lab/" in ended
    code, again = run(*stop.split()[1:], "--yes")
    assert code == 0 and "It is over already." in again


def test_detached_it_runs_on_and_an_unknown_name_is_refused(door: Door) -> None:
    code, said = door.run(FOREVER, "--detach")
    assert code == 0 and "started" in said and "begun" not in said
    with pytest.raises(UserError, match="is no run of the stack"):
        run("stop", "of-nobody", "-s", "small-aws", "--rehearse", "--yes")
    with pytest.raises(UserError, match="--yes: confirmation needs a terminal"):
        run("stop", name_in(said), "-s", "small-aws", "--rehearse")
    assert run("stop", name_in(said), "-s", "small-aws", "--rehearse", "--yes")[0] == 0


def test_an_unknown_price_needs_a_yes_and_starts_nothing_without(door: Door) -> None:
    with pytest.raises(UserError, match=r"--yes: nobody knows what ml.p6-b200.48xlarge costs"):
        door.run("print('x')", "--on", "b200")
    assert "No runs yet" in run("runs", "-s", "small-aws", "--rehearse")[1]


def test_a_fault_of_the_rehearsal_befalls_the_run(door: Door) -> None:
    code, said = door.run("print('x')", "--fault", "aws:sagemaker/trainingJob:capacity")
    assert code == 1 and "the cloud has no such machines now" in said
    assert door.run("print('x')")[0] == 0


def test_a_stack_with_a_cluster_says_which_command_is_right() -> None:
    record = {"trainstack": EXPORTED.model_dump(mode="json")}
    with pytest.raises(
        UserError, match=r"has a cluster.*trainstack smoke render --for jobset.*queue -s dev-aws"
    ):
        opened.read("dev-aws", record, rehearse=False)
    with pytest.raises(UserError, match=r"nothing is deployed.*trainstack up -s small-aws --rehearse"):
        opened.read("small-aws", {}, rehearse=True)


def test_real_credentials_are_out_of_reach_in_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("HOME_OF_ADA", "stays")
    with opened.led_to({"AWS_ACCESS_KEY_ID": "rehearsal"}):
        assert "AWS_PROFILE" not in os.environ and os.environ["AWS_ACCESS_KEY_ID"] == "rehearsal"
        assert os.environ["HOME_OF_ADA"] == "stays"
    assert os.environ["AWS_PROFILE"] == "production" and "AWS_ACCESS_KEY_ID" not in os.environ
