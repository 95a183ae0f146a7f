"""Runs against the emulated service, whose jobs are real processes: from submission to every end there is."""

import datetime
import time
from dataclasses import replace

import pytest

from infra.errors import UserError
from infra.jobs import money, report
from infra.jobs.following import follow
from infra.jobs.service import JobPhase, JobState, LostError
from infra.jobs.submission import prepare, start
from tests.infra.jobs.conftest import Stack
from tests.infra.jobs.samples import NOW
from tests.rehearsal.jobs.aws import account as emulated

HELLO = "import os, sys; print('hello from', os.path.basename(os.getcwd()), sys.argv[1:])"
FOREVER = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.05)"
SAVING = """
import pathlib, signal, time

def save(*_):
    while not pathlib.Path({!r}).exists():
        time.sleep(0.05)
    raise SystemExit(0)

signal.signal(signal.SIGTERM, save)
print("begun", flush=True)
while True:
    time.sleep(0.05)
"""
INTERRUPTIBLE = """
import os, pathlib, time
step = pathlib.Path(os.environ["CHECKPOINTS"], "step")
if step.exists():
    raise SystemExit(print("resumed at", step.read_text()))
print("begun", flush=True)
step.with_name("new").write_text("7")
step.with_name("new").replace(step)  # never stored in part
while True:
    time.sleep(0.05)
"""
CHECKPOINTING = """
import os, pathlib
step = pathlib.Path(os.environ["TRAINSTACK_CHECKPOINTS"], "step")
if step.exists():
    print("goes on from", step.read_text())
else:
    step.write_text("1")
    {failing}
"""
WRAPPED = """
import os, pathlib, sys
import smoke_training.instrumentation  # of the wrapper's own zip
pathlib.Path(os.environ["TRAINSTACK_MODEL"], "name").write_text("vision-lab-model")
name = pathlib.Path(os.environ["TRAINSTACK_MODEL"], "name").read_text()
print(sys.argv[1:], name, os.environ["TRAINSTACK_PERSON"], os.environ["TRAINSTACK_DATASET"])
"""
UNREACHABLE = "http://127.0.0.1:9"


def test_a_run_is_followed_to_its_end(stack: Stack) -> None:
    job = stack.followed(stack.started(HELLO))
    assert job.state is JobState.COMPLETED, stack.text
    assert "hello from code []" in stack.reported
    phases = [line.split(" ", 2)[2].partition(" (")[0] for line in stack.reported if line.startswith("---")]
    assert phases == ["waiting for machines", "loading code and data", "training", "saving the model", "over"]
    said = list(report.ending(job, money.prices(stack.outputs.machines)))
    assert said[0] == f"COMPLETED  {job.name}"
    assert "ml.g6.xlarge spot" in said[1]
    assert [line.split() for line in said if " s3://" in line] == [
        ["model", f"s3://out-bucket/runs/{job.name}/output/model.tar.gz"],
        ["checkpoints", f"s3://out-bucket/teams/vision-lab/{job.name}"],
    ]


def test_the_wrapper_gives_the_script_its_arguments_and_its_place(stack: Stack) -> None:
    made = stack.wrapped(WRAPPED, arguments=("--lr", "3e-4", "it's"))
    start(made, stack.service, stack.reported.append)
    job = stack.followed(made.name)
    assert job.state is JobState.COMPLETED, stack.text
    assert "['--lr', '3e-4', \"it's\"] vision-lab-model ada synthetic" in stack.reported


def test_the_wrapper_says_why_a_script_failed(stack: Stack) -> None:
    made = stack.wrapped("raise ValueError('batch does not fit')")
    start(made, stack.service, stack.reported.append)
    job = stack.followed(made.name)
    assert job.state is JobState.FAILED and "batch does not fit" in report.reason(job)


def test_lines_of_several_machines_say_whose_they_are(stack: Stack) -> None:
    job = stack.followed(stack.started("print('here')", nodes=2))
    assert job.state is JobState.COMPLETED, stack.text
    assert sorted(line for line in stack.reported if line.endswith("| here")) == [
        "algo-1 | here",
        "algo-2 | here",
    ]


def test_a_script_that_fails_is_a_failed_run_with_its_reason(stack: Stack) -> None:
    job = stack.followed(stack.started("raise SystemExit('no such layer')"))
    assert job.state is JobState.FAILED and "AlgorithmError" in report.reason(job)
    assert "no such layer" in stack.text


def test_a_run_out_of_time_is_stopped_and_no_success(stack: Stack) -> None:
    job = stack.followed(stack.started(FOREVER, max_hours=1 / 3600))
    assert (job.state, job.phase) == (JobState.STOPPED, JobPhase.OUT_OF_TIME)
    assert "--max-hours" in report.reason(job)


def test_an_interruption_is_reported_as_what_it_is_and_the_run_goes_on(stack: Stack) -> None:
    made = stack.prepared(INTERRUPTIBLE)
    stored = stack.account.file("out-bucket", f"teams/vision-lab/{made.name}/step")
    # The variable by which the wrapper passes the folder to scripts.
    environment = {**made.plan.env, "CHECKPOINTS": "/opt/ml/checkpoints"}
    start(replace(made, plan=replace(made.plan, env=environment)), stack.service, stack.reported.append)

    def look(seconds: float) -> None:
        if stored.exists() and not (stack.account.home / "faults.json").exists():
            stack.account.faults(interruptions=[{"seconds": 0.01}])  # a reclaimed machine stores nothing more
        time.sleep(seconds)

    job = follow(stack.service, made.name, stack.reported.append, look, look_s=0.05)
    assert job.state is JobState.COMPLETED, stack.text
    assert "interrupted: " in stack.text
    assert stack.reported.count("begun") == 1 and "resumed at 7" in stack.reported


def test_a_run_goes_on_from_the_checkpoints_of_one_that_is_over(stack: Stack) -> None:
    script = CHECKPOINTING.format(failing="raise SystemExit(1)")
    failed = stack.wrapped(script)
    start(failed, stack.service, stack.reported.append)
    with pytest.raises(UserError, match=r"--resume: .*\[run-not-over\]"):
        stack.wrapped(script, resume=failed.name)
    assert stack.followed(failed.name).state is JobState.FAILED
    with pytest.raises(UserError, match=r"--resume: .*\[run-of-other-team\]"):
        stack.wrapped(script, resume=failed.name, person="bob", max_hours=0.1)
    with pytest.raises(UserError, match=r"--resume: .*\[run-not-found\]"):
        stack.wrapped(script, resume="without-owner")
    again = prepare(
        stack.outputs,
        replace(stack.options, resume=failed.name),
        stack.service,
        NOW + datetime.timedelta(seconds=1),
    )
    start(again, stack.service, stack.reported.append)
    assert stack.followed(again.name).state is JobState.COMPLETED, stack.text
    assert "goes on from 1" in stack.reported


def test_no_machines_is_reported_with_what_to_try(stack: Stack) -> None:
    stack.account.faults(faults=[{"on": "aws:sagemaker/trainingJob", "kind": "capacity"}])
    job = stack.followed(stack.started(HELLO))
    assert job.state is JobState.FAILED
    assert "Try later" in report.reason(job)
    assert "not billed" in "\n".join(report.ending(job, {}))


def test_a_machine_that_the_service_lacks_is_reported_with_others(stack: Stack) -> None:
    made = stack.prepared(HELLO)
    wrong = replace(made, plan=replace(made.plan, instance_type="g6.extralarge"))
    with pytest.raises(UserError) as caught:
        start(wrong, stack.service, stack.reported.append)
    said = str(caught.value)
    assert "[machine-not-at-service]" in said and "ml.g6.xlarge" in said and len(said) < 600


def test_what_else_the_service_refuses_is_said_in_its_words(stack: Stack) -> None:
    made = stack.prepared(HELLO)
    place = made.plan.sagemaker
    assert place is not None
    other = replace(place, role_arn=place.role_arn + "-gone")
    with pytest.raises(UserError, match=r"Could not assume role.*\[start-refused\]"):
        start(replace(made, plan=replace(made.plan, sagemaker=other)), stack.service, stack.reported.append)


def test_a_name_that_is_taken_is_refused_and_ones_own_request_is_not(stack: Stack) -> None:
    made = stack.prepared(FOREVER)
    start(made, stack.service, stack.reported.append)
    start(made, stack.service, stack.reported.append)  # as after an answer that was lost
    other = replace(made, plan=replace(made.plan, env={**made.plan.env, "TRAINSTACK_TASK": "other"}))
    with pytest.raises(UserError, match=r"\[run-name-taken\]"):
        start(other, stack.service, stack.reported.append)
    stack.service.stop(made.name)
    assert stack.followed(made.name).state is JobState.STOPPED


def test_code_is_sent_once(stack: Stack) -> None:
    for hour in range(2):
        made = prepare(stack.outputs, stack.options, stack.service, NOW) if hour else stack.prepared(HELLO)
        sent = stack.service.keep(f"{made.code_uri}code.tar.gz", made.pack.content)
        assert sent is (hour == 0)
    folder = stack.account.file("code-bucket", made.code_uri.split("/", 3)[3])
    assert (folder / "code.tar.gz").read_bytes() == made.pack.content


def test_jobs_of_the_stack_are_listed_newest_first_of_all_people(stack: Stack) -> None:
    first = stack.started(HELLO)
    stack.followed(first)
    tags = {"trainstack:stack": "small-aws", "trainstack:person": "bob", "trainstack:team": "nlp"}
    stack.account.start("by-hand", Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    stack.account.start("without-owner")
    for name in ("by-hand", "without-owner"):
        stack.account.ended(name)
    found = list(stack.service.jobs())
    assert [(job.name, job.person) for job in found] == [("by-hand", "bob"), (first, "ada")]
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    assert list(stack.service.jobs(later)) == list(stack.service.jobs(running=True)) == []
    row = report.row(found[0], money.prices(stack.outputs.machines))
    assert (row[0], row[3]) == ("by-hand", "completed")


def test_what_was_spent_counts_against_the_next_run(stack: Stack) -> None:
    stack.followed(stack.started(HELLO))
    made = stack.prepared(HELLO)
    (mine,) = [room for room in made.rooms if room.budget.scope == "person"]
    assert 0 < mine.spent.usd < 0.1
    with pytest.raises(UserError, match=r"person bob.*\[budget-exceeded\]"):
        stack.prepared(HELLO, person="bob")


def test_a_run_that_still_saves_is_listed_as_one_that_is_not_over(stack: Stack) -> None:
    saved = stack.folder / "saved"
    name = stack.started(SAVING.format(str(saved)))
    log, begun = stack.service.logs(name), 0
    while begun < stack.options.nodes:
        begun += sum("begun" in line.text for line in log.read())
    (running,) = stack.service.jobs(running=True)
    stack.service.stop(name)
    (stopping,) = stack.service.jobs(running=True)
    saved.touch()
    assert [one.state for one in (running, stopping)] == [JobState.RUNNING, JobState.STOPPING]
    assert stack.followed(name).state is JobState.STOPPED
    assert [*stack.service.jobs(running=True)] == []


def test_a_run_that_is_over_can_be_stopped_again(stack: Stack) -> None:
    name = stack.started(HELLO)
    stack.followed(name)
    stack.service.stop(name)
    with pytest.raises(UserError, match=r"no-such-run.*\[request-refused\]"):
        stack.service.stop("no-such-run")
    assert stack.service.job("no-such-run") is None


def test_a_service_that_does_not_answer_is_lost_and_nothing_is_concluded(stack: Stack) -> None:
    made = stack.prepared(HELLO)
    config = emulated.boto3.session.Config(retries={"max_attempts": 0}, connect_timeout=1)
    away = stack.service_at(UNREACHABLE, config=config)
    with pytest.raises(LostError):
        away.submit(made.plan)
    with pytest.raises(LostError):
        away.logs(made.name).read()
    with pytest.raises(UserError, match=r"connection: .*\[service-unreachable\]"):
        prepare(stack.outputs, stack.options, away, NOW)


def test_another_account_is_refused_before_anything_is_made(stack: Stack) -> None:
    people = tuple(
        one.model_copy(update={"role": one.role.replace("123456789012", "999999999999")})
        for one in stack.outputs.people
    )
    stack.outputs = stack.outputs.model_copy(update={"people": people})
    with pytest.raises(UserError, match=r"123456789012.*999999999999.*\[login-for-other-account\]"):
        stack.prepared(HELLO)
    assert not stack.account.file("code-bucket", "code").exists()
