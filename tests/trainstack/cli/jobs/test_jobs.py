"""`trainstack run`, `runs` and `stop` in a rehearsal with its daemon, services and processes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra import stackspec
from infra.engine.golang import ROOT
from infra.errors import Problem, UserError
from infra.jobs.aws import plan
from infra.outputs.jobs import JobOutputs
from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from tests.infra.jobs.samples import ACCOUNT, OUTPUTS
from tests.rehearsal.jobs.aws import account as emulated
from tests.trainstack.cli.command import run, run_json
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli.jobs import opened
from trainstack.cli.jobs import run as command
from trainstack.cli.operations import job_service

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

    def engine(self, stack: str, *, rehearse: bool) -> Any:
        record = SimpleNamespace(value=self.outputs.model_dump(mode="json"))
        engine = SimpleNamespace(outputs=lambda: {"trainstack": record})
        return engine, Rehearsal(self.home) if rehearse else None


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
    monkeypatch.setattr(opened, "open_engine", made.engine)
    # What is tested here is not the wrapper around the script.
    monkeypatch.setattr(plan, "COMMAND", ("python3", "train.py"))
    yield made
    Rehearsal(home).stop()


def name_in(said: str) -> str:
    return next(line.split()[1] for line in said.splitlines() if line.startswith("run  "))


def test_a_run_from_its_price_to_its_verdict_and_the_table(door: Door) -> None:
    code, said = door.run("print('training')")
    assert code == 0, said
    for fact in ("$1.13 (1 x", "person ada: $0.00 of", "to s3://code-bucket/code/"):
        assert fact in said
    assert "\ntraining\n" in said and f"COMPLETED  {name_in(said)}" in said
    code, found = run_json("runs", "-s", "small-aws", "--rehearse")
    (row,) = found["runs"]
    assert (code, row["name"], row["state"], row["person"]) == (0, name_in(said), "completed", "ada")
    assert run("runs", "-s", "small-aws", "--rehearse")[1].splitlines()[1].startswith(row["name"])
    assert run_json("runs", "-s", "small-aws", "--rehearse", "--person", "bob")[1]["runs"] == []


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
    assert "$2.25 (2 trials" in said and "minimize loss over lr" in said
    assert f"loss 0.5 by {name_in(said)}-00" in said and "(lr 0.5)" in said
    _, found = run_json("runs", "-s", "small-aws", "--rehearse")
    assert sorted(row["search"] for row in found["runs"]) == [False, False, True]
    with pytest.raises(UserError) as caught:
        door.run("print('loss 0.5')", "--tune", "none.toml")
    assert [problem.path for problem in caught.value.problems] == ["--tune"]


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
    assert f"`{stop}` stops it" in said
    code, ended = run(*stop.split()[1:], "--yes")
    assert code == 0 and f"STOPPED  {name_in(said)}" in ended
    assert "checkpoints  s3://out-bucket/teams/vision-lab/" in ended
    assert run(*stop.split()[1:], "--yes")[0] == 0, "it has ended already"


def refused(*words: str) -> tuple[tuple[str, str], ...]:
    with pytest.raises(UserError) as caught:
        run(*words)
    return caught.value.codes


def test_a_detached_run_continues_and_an_unknown_name_is_refused(door: Door) -> None:
    code, said = door.run(FOREVER, "--detach")
    assert code == 0 and "started" in said and "begun" not in said
    stack = ("-s", "small-aws", "--rehearse")
    assert refused("stop", "of-another", *stack, "--yes") == (("unknown-run", "run"),)
    assert refused("stop", name_in(said), *stack) == (("confirmation-needs-terminal", "--yes"),)
    assert refused("runs", *stack, "--person", "eve") == (("unknown-person", "--person"),)
    assert run("stop", name_in(said), *stack, "--yes")[0] == 0


def test_a_typo_in_the_stack_file_does_not_prevent_listing_and_stopping(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, said = door.run(FOREVER, "--detach")

    def load_file(*_: object) -> Any:
        raise UserError([Problem("layout.machnies", None, "is not a key", "Remove it.", code="unknown-key")])

    monkeypatch.setattr(stackspec, "load_file", load_file)
    stack = ("-s", "small-aws", "--rehearse")
    assert [row["state"] for row in run_json("runs", *stack)[1]["runs"]] == ["running"]
    assert run("stop", name_in(said), *stack, "--yes")[0] == 0
    assert [row["state"] for row in run_json("runs", *stack)[1]["runs"]] == ["stopped"]


def test_the_run_of_a_person_who_is_removed_is_listed_and_stopped(door: Door) -> None:
    _, said = door.run(FOREVER, "--detach")
    people = tuple(one for one in door.outputs.people if one.name != "ada")
    door.outputs = door.outputs.model_copy(update={"people": people})
    stack = ("-s", "small-aws", "--rehearse")
    (row,) = run_json("runs", *stack, "--person", "ada")[1]["runs"]
    assert (row["name"], row["state"], row["person"]) == (name_in(said), "running", "ada")
    with pytest.raises(UserError) as caught:
        door.run(FOREVER)
    assert caught.value.codes == (("unknown-person", "--as"),)
    code, ended = run("stop", name_in(said), *stack, "--yes")
    assert code == 0 and f"STOPPED  {name_in(said)}" in ended


def test_a_folder_is_sent_with_a_warning_and_a_false_alarm_by_its_name(door: Door) -> None:
    (door.folder / "environment.yml").write_text("dependencies: [numpy]\n")
    (door.folder / "settings.env").write_text("EPOCHS=3\n")
    with pytest.raises(UserError) as caught:
        door.run("print('x')")
    assert caught.value.codes == (("file-like-secret", "settings.env"),)
    code, said = door.run("print('x')", "--send", "settings.env")
    assert code == 0 and "environment.yml: " in said and "[packages-not-installed]" in said


def test_an_unknown_price_needs_a_yes_and_starts_nothing_without(door: Door) -> None:
    with pytest.raises(UserError) as caught:
        door.run("print('x')", "--on", "b200")
    assert caught.value.codes == (("price-unknown", "--yes"),)
    assert run_json("runs", "-s", "small-aws", "--rehearse")[1]["runs"] == []


def test_a_fault_of_the_rehearsal_affects_one_run(door: Door) -> None:
    code, said = door.run("print('x')", "--fault", "aws:sagemaker/trainingJob:capacity")
    assert code == 1 and "FAILED" in said and "no such machines" in said
    assert door.run("print('x')")[0] == 0


@pytest.mark.parametrize(
    ("record", "code", "command"),
    [
        ({"trainstack": EXPORTED.model_dump(mode="json")}, "stack-has-cluster", "trainstack smoke render"),
        ({}, "not-deployed", "trainstack up -s small-aws --rehearse"),
    ],
)
def test_a_stack_without_managed_jobs_names_the_right_command(
    record: dict[str, Any], code: str, command: str
) -> None:
    with pytest.raises(UserError) as caught:
        opened.read("small-aws", record, rehearse=True)
    assert caught.value.codes == ((code, "stack"),) and command in caught.value.problems[0].fix


def test_real_credentials_are_out_of_reach_in_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("HOME_OF_ADA", "stays")
    with job_service.environment_of({"AWS_ACCESS_KEY_ID": "rehearsal"}):
        assert "AWS_PROFILE" not in os.environ and os.environ["AWS_ACCESS_KEY_ID"] == "rehearsal"
        assert os.environ["HOME_OF_ADA"] == "stays"
    assert os.environ["AWS_PROFILE"] == "production" and "AWS_ACCESS_KEY_ID" not in os.environ
