"""Runs as custom jobs of the emulated Vertex AI: they really train."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.jobs.following import follow
from infra.jobs.gcp.plan import part
from infra.jobs.gcp.prices import price_share
from infra.jobs.gcp.runs import VertexRuns
from infra.jobs.packing.pack import pack
from infra.jobs.plan import run_plan
from infra.jobs.service import JobPhase, JobState, LostError, ServiceJob
from infra.jobs.stopping import stopped
from infra.jobs.submission import Submission, prepare, start
from infra.launchers import managed
from rehearsal import service_ports
from smoke_training.names import IAP
from tests.infra.jobs.vertex_samples import NOW, OUTPUTS, options
from tests.rehearsal.jobs.gcp.conftest import PROJECT, REGION, TRAINER, Project

TRAIN = """
import os, pathlib, sys
step = pathlib.Path(os.environ["TRAINSTACK_CHECKPOINTS"], "step")
print("from", step.read_text() if step.exists() else 0, sys.argv[1:], flush=True)
step.write_text("7")
pathlib.Path(os.environ["TRAINSTACK_MODEL"], "model.txt").write_text("weights")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    found = Project(tmp_path / "home")
    for key, value in service_ports.environment(found.home).items():
        monkeypatch.setenv(key, value)
    yield found
    found.services.stop()
    found.state.close()


@pytest.fixture
def service(project: Project) -> VertexRuns:
    return VertexRuns(PROJECT, REGION, "small-gcp", price_share)


def submitted(folder: Path, script: str, service: VertexRuns, **changes: Any) -> Submission:
    """A folder with one script as a job that was started."""
    code = folder / "finetune"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(script)
    run = prepare(OUTPUTS, options(code, **changes), service, NOW)
    start(run, service, lambda _: None)
    return run


def followed(run: Submission, service: VertexRuns) -> tuple[ServiceJob, list[str]]:
    reported: list[str] = []
    return follow(service, run.name, reported.append, time.sleep, 0.1), reported


def test_a_folder_trains_and_leaves_its_model_and_record(
    project: Project, service: VertexRuns, tmp_path: Path
) -> None:
    run = submitted(tmp_path, TRAIN, service, arguments=("--lr", "3e-4"))
    job, reported = followed(run, service)
    assert (job.state, job.phase, job.person, job.team) == (
        JobState.COMPLETED, JobPhase.OVER, "ada", "Vision Lab",
    ), reported  # fmt: skip
    assert "from 0 ['--lr', '3e-4']" in reported
    below = f"runs/{run.name}"
    assert job.model_uri == f"gs://runs-bucket/{below}/model"
    assert project.file("runs-bucket", f"{below}/model/model.txt").read_text() == "weights"
    assert job.checkpoint_uri == f"gs://runs-bucket/teams/vision-lab/{run.name}"
    assert project.file("runs-bucket", f"teams/vision-lab/{run.name}/step").read_text() == "7"
    record = json.loads(project.file("runs-bucket", f"{below}/output/run.json").read_text())
    assert (record["status"], record["person"], record["machine"]) == ("FINISHED", "ada", "e2-standard-4")
    assert job.billed_s == job.trained_s and job.max_run_s == 360


def test_code_is_sent_once(project: Project, service: VertexRuns, tmp_path: Path) -> None:
    run = submitted(tmp_path, TRAIN, service)
    followed(run, service)
    assert service.keep(f"{run.code_uri}code.tar.gz", b"another") is False
    assert service.content(f"{run.code_uri}code.tar.gz") == run.pack.content
    with pytest.raises(UserError, match=r"\[run-name-taken\]"):
        service.submit(run.plan)


def test_several_nodes_meet(project: Project, service: VertexRuns, tmp_path: Path) -> None:
    script = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("sum", int(total), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""
    job, reported = followed(submitted(tmp_path, script, service, nodes=2), service)
    assert job.state is JobState.COMPLETED and job.nodes == 2, reported
    assert "workerpool0-0 | sum 3 of 2" in reported and "workerpool1-0 | sum 3 of 2" in reported


def test_a_spot_run_goes_on_from_its_checkpoint(
    project: Project, service: VertexRuns, tmp_path: Path
) -> None:
    script = TRAIN + "\nimport time\nif not sys.argv[1:] and not step.with_name('again').exists():\n"
    script += "    step.with_name('again').touch(); time.sleep(120)\n"
    run = submitted(tmp_path, script, service, machine="l4", spot=True)
    stored, reported = project.file("runs-bucket", f"teams/vision-lab/{run.name}/step"), list[str]()

    def look(seconds: float) -> None:
        if stored.exists() and not (project.home / "faults.json").exists():
            project.faults(interruptions=[{"seconds": 0.01}])
        time.sleep(seconds)

    job = follow(service, run.name, reported.append, look, 0.1)
    assert job.state is JobState.COMPLETED and job.spot, reported
    lines = [line for line in reported if line.startswith("from ")]
    assert [line.split()[1] for line in lines] == ["0", "7"]
    assert any("after 1 interruptions" in line for line in reported)
    # Spot costs less by the catalog, so less is billed.
    assert job.billed_s is not None and job.trained_s is not None and job.billed_s < job.trained_s


def test_a_script_that_fails_says_why(project: Project, service: VertexRuns, tmp_path: Path) -> None:
    job, reported = followed(submitted(tmp_path, "raise ValueError('no such layer')", service), service)
    assert job.state is JobState.FAILED, reported
    assert "ValueError: no such layer" in job.reason and "non-zero status of 1" in job.reason


def test_a_run_is_stopped_and_listed(project: Project, service: VertexRuns, tmp_path: Path) -> None:
    run = submitted(tmp_path, "import time; print('on', flush=True); time.sleep(300)", service)
    (made,) = project.ask("GET", f"v1/projects/{PROJECT}/locations/{REGION}/customJobs").json()["customJobs"]
    project.reached(made["name"], {"JOB_STATE_RUNNING"})
    (listed,) = service.jobs()
    assert (listed.name, listed.state, listed.machine) == (run.name, JobState.RUNNING, "e2-standard-4")
    assert [one.name for one in service.jobs(running=True)] == [run.name]
    job = stopped(service, run.name, lambda _: None, time.sleep, 0.1)
    assert (job.state, job.phase) == (JobState.STOPPED, JobPhase.OVER)
    assert [*service.jobs(running=True)] == []
    service.stop(run.name)  # again: it is over
    other = VertexRuns(PROJECT, REGION, "another")
    assert list(other.jobs()) == [] and other.job("nothing") is None


def test_a_run_that_takes_too_long_is_out_of_time(
    project: Project, service: VertexRuns, tmp_path: Path
) -> None:
    run = submitted(tmp_path, "import time; time.sleep(300)", service, max_hours=3 / 3600)
    job, _ = followed(run, service)
    assert (job.state, job.phase) == (JobState.STOPPED, JobPhase.OUT_OF_TIME)


def test_what_is_refused_says_what_to_do(project: Project, service: VertexRuns, tmp_path: Path) -> None:
    metric = "aiplatform.googleapis.com/custom_model_training_preemptible_nvidia_l4_gpus"
    project.faults(quotas={metric: 0})
    with pytest.raises(UserError, match=rf"{metric} in {REGION}.*\[quota-exceeded\]"):
        submitted(tmp_path, TRAIN, service, machine="l4")
    project.faults()
    project.state.remove(project.state.find(id=TRAINER)[0])
    with pytest.raises(UserError, match=r"\[service-account-denied\]"):
        submitted(tmp_path, TRAIN, service)
    with pytest.raises(UserError, match="cannot read"):
        service.content("gs://runs-bucket/nothing")


def test_a_lost_answer_is_looked_for_and_not_asked_again(
    project: Project, service: VertexRuns, tmp_path: Path
) -> None:
    project.faults(faults=[{"on": "gcp:vertex/customJob", "kind": "transient", "times": 1}])
    with pytest.raises(LostError):
        submitted(tmp_path, TRAIN, service)
    assert list(service.jobs()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": "s3://bucket/data"}, "Write gs://BUCKET/FOLDER/"),
        ({"keep_warm_minutes": 10}, "keeps no machines"),
    ],
)
def test_options_of_the_other_cloud_are_refused(
    service: VertexRuns, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        submitted(tmp_path, TRAIN, service, **changes)


def test_data_is_read_where_it_lies(service: VertexRuns, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    run = prepare(OUTPUTS, options(tmp_path, data="gs://code-bucket/data/a/"), service, NOW)
    plan = run_plan(run.order, run.pack, run.code_uri, NOW, part_of=part)
    assert plan.env["TRAINSTACK_DATA_URI"] == "gs://code-bucket/data/a/"
    assert plan.vertex is not None and plan.vertex.service_account == TRAINER
    # The tracking server is behind a proxy, and mlflow finds its login by this name.
    assert plan.env["MLFLOW_TRACKING_AUTH"] == IAP


def test_code_that_another_member_puts_in_its_place_does_not_run(
    project: Project, service: VertexRuns, tmp_path: Path
) -> None:
    code, other = tmp_path / "finetune", tmp_path / "other"
    for folder, word in ((code, "mine"), (other, "not mine")):
        folder.mkdir()
        (folder / "train.py").write_text(f"print({word!r})")
    run = prepare(OUTPUTS, options(code), service, NOW)
    service.keep(f"{run.code_uri}{managed.PACK}", pack(other).content)
    start(run, service, lambda _: None)
    job, reported = followed(run, service)
    assert job.state is JobState.FAILED and "not mine" not in reported, reported


def test_a_shell_script_with_an_empty_folder_and_a_link_runs_as_on_its_machine(
    project: Project, service: VertexRuns, tmp_path: Path
) -> None:
    code = tmp_path / "finetune"
    (code / "outputs").mkdir(parents=True)
    (code / "tool").write_text("#!/bin/sh\necho tool $1\n")
    (code / "link").symlink_to("tool")
    (code / "run.sh").write_text('./link "$1"; touch outputs/x; echo "rank $PET_NODE_RANK of $PET_NNODES"\n')
    run = prepare(OUTPUTS, options(code, script="run.sh", arguments=("7",)), service, NOW)
    start(run, service, lambda _: None)
    job, reported = followed(run, service)
    assert job.state is JobState.COMPLETED and {"tool 7", "rank 0 of 1"} <= set(reported), reported
