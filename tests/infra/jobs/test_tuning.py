"""Searches for hyperparameters: what a folder declares, what the service is asked for, trials that run."""

import dataclasses
import gzip
import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.jobs import money
from infra.jobs.aws.plan import part
from infra.jobs.aws.search.tuning import is_search, read, request
from infra.jobs.plan import run_name, run_plan
from infra.jobs.report import row
from infra.jobs.service import JobState, TuningSpec
from infra.jobs.stopping import stopped
from infra.jobs.submission import start
from infra.launchers import bundle, managed
from infra.launchers.aws import sagemaker, trial
from tests.infra.jobs.conftest import Stack
from tests.infra.jobs.samples import NOW, order
from tests.infra.jobs.test_plan import CODE, PACK, _session, _validate
from tests.infra.launchers.test_managed import faults

_model: Any = _session.get_session().get_service_model("sagemaker")
MODEL = _model.operation_model("CreateHyperParameterTuningJob").input_shape
SHIPPED = Path(__file__).parents[3] / "examples" / "sweep"
SEARCH = TuningSpec(
    trials=2,
    parallel=2,
    strategy="Random",
    metric="loss",
    regex=r"loss ([0-9.]+)",
    goal="Minimize",
    ranges={"lr": {"from": 0.1, "to": 0.9}, "rank": {"values": [4, 8]}, "layers": {"from": 1, "to": 3}},
)


def test_the_search_of_the_template_is_what_the_service_takes() -> None:
    tuning = read(SHIPPED, "sweep.toml")
    asked = order(tune=tuning, script="trial.py")
    made = request(sagemaker.training_job(run_plan(asked, PACK, CODE, NOW, part_of=part)), tuning)
    report = _validate.ParamValidator().validate(made, MODEL)
    assert not report.has_errors(), report.generate_report()
    assert faults(MODEL, made) == []
    assert made["HyperParameterTuningJobName"] == run_name(asked, NOW) and is_search(run_name(asked, NOW))
    ranges = made["HyperParameterTuningJobConfig"]["ParameterRanges"]
    assert {row["Name"] for rows in ranges.values() for row in rows} == {"lr", "rank", "alpha"}
    definition = made["TrainingJobDefinition"]
    assert definition["EnableManagedSpotTraining"] is True and definition["CheckpointConfig"]
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    assert tags["trainstack:person"] == "ada" and tags["trainstack:stack"] == "small-aws"


def test_the_price_is_that_of_all_trials() -> None:
    price = money.price(order(tune=SEARCH, spot=False))
    assert price.usd == pytest.approx(2 * 2 * 1.127) and "2 trials x" in str(price)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("trials = 0", "trials"),
        ("parallel = 3", "parallel"),
        ('strategy = "grid"', "strategy"),
        ("[objective]\nmetric = 'x'\nregex = 'x'\ngoal = 'minimize'", "objective.regex"),
        ("[objective]\nmetric = 'x'\nregex = '(x'\ngoal = 'least'", "objective.goal"),
        ("[parameters]\nlr = {from = 2, to = 1}", "parameters.lr"),
        ("[parameters]\nlr = {from = 0, to = 1, scale = 'logarithmic'}", "parameters.lr.from"),
        ("[parameters]\nx = {values = [1]}", "parameters.x"),
        ("[parameters]\nlr = {values = []}", "parameters.lr"),
        ("workers = 1", "workers"),
    ],
)
def test_what_cannot_be_searched_is_refused_at_its_place(tmp_path: Path, text: str, place: str) -> None:
    given = text.split("[", maxsplit=1)[0]
    rest = text[len(given) :]
    first = given if "trials" in given else f"trials = 2\n{given}"
    parts = {
        "[objective]": "[objective]\nmetric = 'x'\nregex = '(x)'\ngoal = 'minimize'",
        "[parameters]": "[parameters]\nlr = {values = [1]}",
    }
    whole = [first, rest, *(part for name, part in parts.items() if name not in text)]
    (tmp_path / "sweep.toml").write_text("\n".join(whole))
    with pytest.raises(UserError) as caught:
        read(tmp_path, "sweep.toml")
    assert any(problem.path.endswith(f": {place}") for problem in caught.value.problems), caught.value


def test_a_search_is_of_runs_that_begin_anew() -> None:
    with pytest.raises(UserError) as caught:
        order(tune=SEARCH, keep_warm_minutes=5, resume="small-aws-ada-x", spot=False)
    assert {problem.path for problem in caught.value.problems} == {"--keep-warm", "--resume"}


SCRIPT = """
import json, os
given = json.loads(os.environ["TRAINSTACK_ARGUMENTS"])
found = dict(zip(given[2::2], given[3::2]))
assert given[:2] == ["--seed", "7"] and found["--rank"] in ("4", "8") and 1 <= int(found["--layers"]) <= 3
assert os.environ["TRAINSTACK_RUN"] == os.environ["TRAINSTACK_TRIAL"] == os.environ["TRAINING_JOB_NAME"]
print("loss", found["--lr"], flush=True)
"""


def test_trials_run_with_what_they_are_given_and_the_best_is_reported(stack: Stack) -> None:
    run = stack.prepared(SCRIPT, tune=SEARCH, spot=False, arguments=("--seed", "7"))
    start(run, stack.service, stack.reported.append)
    found = stack.followed(run.name)
    assert found.state is JobState.COMPLETED and found.search, (found, stack.text)
    trials = [job for job in stack.service.jobs() if not job.search]
    assert len(trials) == 2 and all(job.name.startswith(f"{run.name}-00") for job in trials)
    assert all((job.person, job.team, job.state) == ("ada", "Vision Lab", "completed") for job in trials)
    losses = [float(line.rpartition(" ")[2]) for line in stack.reported if line.startswith("loss ")]
    assert len(losses) == 2 and f"loss {min(losses):g} by" in found.best, (losses, found.best)
    assert found.billed_s == sum(job.billed_s or 0 for job in trials) > 0
    (listed,) = [job for job in stack.service.jobs() if job.search]
    assert row(listed, {})[5:] == ("its trials", found.best)


def test_a_search_that_is_stopped_ends_its_trials_and_starts_no_more(stack: Stack) -> None:
    many = dataclasses.replace(SEARCH, trials=20, parallel=1)
    run = stack.prepared("import time\nprint('begun', flush=True)\ntime.sleep(60)\n", tune=many, spot=False)
    start(run, stack.service, stack.reported.append)
    stack.account.reached_search(run.name, 1)
    (going,) = [job for job in stack.service.jobs() if job.search]
    assert going.max_run_s == 19 * 7200
    ended = stopped(stack.service, run.name, stack.reported.append, lambda _: None, 0.05)
    assert ended.state is JobState.STOPPED
    (trial,) = [job for job in stack.service.jobs() if not job.search]
    assert trial.state is JobState.STOPPED


def test_a_search_whose_trials_all_fail_says_why(stack: Stack) -> None:
    run = stack.prepared("raise SystemExit(3)\n", tune=SEARCH, spot=False)
    start(run, stack.service, stack.reported.append)
    found = stack.followed(run.name)
    assert found.state is JobState.FAILED and "No training job succeeded after 2 attempts" in found.reason


def test_a_trial_ends_where_its_program_is_not_the_submitted_one(tmp_path: Path) -> None:
    content = b"a program"
    pack = dataclasses.replace(
        PACK, content=gzip.compress(content), sha256=hashlib.sha256(content).hexdigest()
    )
    plan = run_plan(order(tune=SEARCH, script="trial.py"), pack, CODE, NOW, part_of=part)
    check = plan.env[managed.CHECK]
    assert len(check) <= 512, "of a variable in a training job"
    (tmp_path / managed.PACK).write_bytes(pack.content)
    (tmp_path / bundle.NAME).write_bytes(bundle.of_jobs().content)
    (tmp_path / trial.NAME).write_bytes(Path(trial.__file__).read_bytes())
    ended = [subprocess.run(["bash", "-c", check], cwd=tmp_path, check=False).returncode]
    (tmp_path / trial.NAME).write_text("print()")
    ended.append(subprocess.run(["bash", "-c", check], cwd=tmp_path, check=False).returncode)
    assert ended == [0, 3]
