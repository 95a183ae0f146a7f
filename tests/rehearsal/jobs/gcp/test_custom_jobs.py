"""Custom jobs that run, as a client of the REST API sees them."""

import json
import time

import pytest

from rehearsal.accounts import project_number
from tests.rehearsal.jobs.gcp.conftest import ADA, OVER, PROJECT, REGION, TRAINER, Project

ASKING = b"""
import json, os, urllib.error, urllib.request

def get(url, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=names)).read().decode()
    except urllib.error.HTTPError as error:
        return error.code

account = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/service-accounts/default"
print(get(f"{account}/email", Metadata_Flavor="Google"))
token = json.loads(get(f"{account}/token", Metadata_Flavor="Google"))["access_token"]
place = f"{os.environ['STORAGE_EMULATOR_HOST']}/storage/v1/b/code-bucket/o/data.txt?alt=media"
print(get(place, Authorization=f"Bearer {token}"))
"""


def test_a_job_runs_its_command_and_logs(project: Project) -> None:
    found = project.run("echo hello from $CLOUD_ML_JOB_ID", labels={"team": "vision"})
    assert found["state"] == "JOB_STATE_SUCCEEDED", found
    number, key = project_number(PROJECT), found["name"].rpartition("/")[2]
    assert found["name"] == f"projects/{number}/locations/{REGION}/customJobs/{key}"
    assert found["createTime"] <= found["startTime"] <= found["endTime"]
    assert found["labels"] == {"team": "vision"} and "error" not in found
    assert project.lines(found["name"]) == [f"hello from {key}"]
    assert "Job completed successfully." in project.lines(found["name"], "service")


def test_every_replica_finds_its_place_and_the_others(project: Project) -> None:
    script = (
        "python3 -c \"import json,os;c=json.loads(os.environ['CLUSTER_SPEC']);"
        "print(json.dumps([c['cluster'],c['task'],c['environment'],len(c['job']['workerPoolSpecs'])]))\";"
        "echo $TF_CONFIG"
    )
    # The primary replica ends the job, so it waits until the others have written.
    wait = f"{script}; sleep 1"
    found = project.run(wait, workers=2)
    assert found["state"] == "JOB_STATE_SUCCEEDED", found
    environments = {
        name: json.loads(project.lines(found["name"], name)[0])
        for name in ("workerpool0-0", "workerpool1-0", "workerpool1-1")
    }
    clusters = [one[0] for one in environments.values()]
    assert clusters[0] == clusters[1] == clusters[2]
    assert [len(clusters[0][pool]) for pool in ("workerpool0", "workerpool1")] == [1, 2]
    addresses = [address for pool in clusters[0].values() for address in pool]
    assert len(set(addresses)) == 3 and all(address.endswith(":2222") for address in addresses)
    assert environments["workerpool1-1"][1] == {"type": "workerpool1", "index": 1}
    assert environments["workerpool0-0"][2:] == ["cloud", 2]
    tensorflow = json.loads(project.lines(found["name"], "workerpool1-1")[1])
    assert tensorflow["task"] == {"type": "worker", "index": 1} and len(tensorflow["cluster"]["worker"]) == 2


def test_directories_need_a_base_directory(project: Project) -> None:
    script = 'echo "[$AIP_MODEL_DIR $AIP_CHECKPOINT_DIR $AIP_TENSORBOARD_LOG_DIR $TF_CONFIG]"'
    base = {"outputUriPrefix": "gs://runs-bucket/runs/one"}
    with_base = project.run(script, baseOutputDirectory=base)
    (line,) = project.lines(with_base["name"])
    below = "gs://runs-bucket/runs/one"
    assert line == f"[{below}/model/ {below}/checkpoints/ {below}/logs/ ]"
    assert project.lines(project.run(script)["name"]) == ["[   ]"]


def test_buckets_are_mounted_for_accounts_with_rights(project: Project) -> None:
    project.put("code-bucket", "a/data.txt", b"seven")
    script = "mkdir -p /gcs/runs-bucket/out; cat /gcs/code-bucket/a/data.txt > /gcs/runs-bucket/out/copy.txt"
    assert project.run(script)["state"] == "JOB_STATE_SUCCEEDED"
    assert project.file("runs-bucket", "out/copy.txt").read_text() == "seven"
    refused = project.run(script, serviceAccount=ADA)
    assert refused["state"] == "JOB_STATE_FAILED"
    assert any("403" in line or "Not a directory" in line for line in project.lines(refused["name"]))


def test_the_metadata_server_gives_the_rights_of_the_jobs_account(project: Project) -> None:
    project.put("code-bucket", "data.txt", b"seven")
    script = "python3 /gcs/runs-bucket/asking.py"
    project.put("runs-bucket", "asking.py", ASKING)
    assert project.lines(project.run(script)["name"]) == [TRAINER, "seven"]
    binding = {
        "bucket": "runs-bucket",
        "role": "roles/storage.objectViewer",
        "member": f"serviceAccount:{ADA}",
    }
    made = project.add("storage/bucketIAMMember:BucketIAMMember", "ada", binding)
    project.state.refer(made, {"bucket": project.state.find(id="runs-bucket")[0]})
    assert project.lines(project.run(script, serviceAccount=ADA)["name"]) == [ADA, "403"]


def test_an_exception_of_a_worker_fails_the_job_at_once(project: Project) -> None:
    found = project.run("echo trying; [ $CLOUD_ML_JOB_ID ] && exit 3", workers=1)
    assert found["state"] == "JOB_STATE_FAILED"
    assert found["error"]["code"] == 3
    assert found["error"]["message"].startswith("The replica workerpool")
    assert "exited with a non-zero status of 3" in found["error"]["message"]
    assert project.lines(found["name"]).count("trying") == 1


@pytest.mark.parametrize(
    ("script", "scheduling", "attempts"),
    [
        ("exit 134", {}, 4),  # SIGABRT: the whole job, three times more
        ("exit 134", {"disableRetries": True}, 1),
        ("kill -9 $$", {"disableRetries": True}, 1),
    ],
)
def test_transient_failures_are_retried_unless_disabled(
    project: Project, script: str, scheduling: dict[str, bool], attempts: int
) -> None:
    found = project.run(f"echo trying; {script}", scheduling=scheduling)
    assert found["state"] == "JOB_STATE_FAILED"
    assert project.lines(found["name"]).count("trying") == attempts


def test_a_worker_that_was_killed_starts_again_alone(project: Project) -> None:
    once = "F=/gcs/runs-bucket/mark; [ -e $F ] || { touch $F; kill -9 $$; }"
    script = (
        'echo begins; case $CLUSTER_SPEC in *\'"type": "workerpool1"\'*) '
        f"{once}; touch /gcs/runs-bucket/second;; "
        "*) until [ -e /gcs/runs-bucket/second ]; do sleep 0.1; done;; esac"
    )
    found = project.run(script, workers=1)
    assert found["state"] == "JOB_STATE_SUCCEEDED", found
    assert project.lines(found["name"], "workerpool1-0").count("begins") == 2
    assert project.lines(found["name"], "workerpool0-0").count("begins") == 1


def test_the_whole_job_restarts_where_configured(project: Project) -> None:
    once = "F=/gcs/runs-bucket/mark; [ -e $F ] || { touch $F; kill -9 $$; }"
    script = f'echo begins; case $CLUSTER_SPEC in *\'"type": "workerpool1"\'*) {once};; esac; sleep 0.5'
    found = project.run(script, workers=1, scheduling={"restartJobOnWorkerRestart": True})
    assert found["state"] == "JOB_STATE_SUCCEEDED", found
    assert project.lines(found["name"], "workerpool0-0").count("begins") == 2


def test_a_preempted_job_starts_again_and_finds_its_files(project: Project) -> None:
    script = "F=/gcs/runs-bucket/step; echo begins; [ -e $F ] && exit 0; touch $F; sleep 60"
    name = project.start(script, scheduling={"strategy": "SPOT"})
    deadline = time.monotonic() + 30
    while not project.file("runs-bucket", "step").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    project.faults(interruptions=[{"seconds": 0.1}])  # of a job that runs
    project.reached(name, {"JOB_STATE_PENDING"})  # for as long as it has no other machines
    found = project.reached(name, OVER)
    assert found["state"] == "JOB_STATE_SUCCEEDED", found
    assert project.lines(name).count("begins") == 2
    assert any("insufficient in region" in line for line in project.lines(name, "service"))


def test_a_preempted_job_without_retries_fails_without_machines(project: Project) -> None:
    project.faults(interruptions=[{"seconds": 0.2}])
    found = project.run("sleep 60", scheduling={"strategy": "SPOT", "disableRetries": True})
    assert found["state"] == "JOB_STATE_FAILED"
    assert found["error"] == {
        "code": 8,
        "message": f"Resources are insufficient in region: {REGION}. Try a different region or use a "
        "different accelerator.",
    }


def test_no_machines(project: Project) -> None:
    project.faults(faults=[{"on": "gcp:vertex/customJob", "kind": "capacity"}])
    found = project.run("true")
    assert found["state"] == "JOB_STATE_FAILED" and "insufficient in region" in found["error"]["message"]


def test_a_job_that_runs_too_long_is_cancelled(project: Project) -> None:
    script = "trap 'echo saved; exit 0' TERM; for i in $(seq 300); do sleep 0.1; done"
    found = project.run(script, scheduling={"timeout": "1s"})
    assert found["state"] == "JOB_STATE_CANCELLED"
    assert project.lines(found["name"])[-1] == "saved"


def test_a_job_is_cancelled(project: Project) -> None:
    name = project.start("trap 'echo saved; exit 0' TERM; echo on; for i in $(seq 300); do sleep 0.1; done")
    deadline = time.monotonic() + 20
    while project.lines(name) != ["on"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert project.ask("POST", f"v1/{name}:cancel", {}).json() == {}
    found = project.reached(name, OVER)
    assert (found["state"], found["error"]["code"]) == ("JOB_STATE_CANCELLED", 1)
    assert project.lines(name)[-1] == "saved"
    again = project.ask("POST", f"v1/{name}:cancel", {})
    assert again.json()["error"]["status"] == "FAILED_PRECONDITION"


def test_nothing_of_a_job_is_left(project: Project) -> None:
    name = project.start("sleep 60")
    project.reached(name, {"JOB_STATE_RUNNING"})
    (row,) = project.services.live_workloads()
    assert (row["kind"], row["phase"], row["pod"]) == ("CustomJob", "JOB_STATE_RUNNING", "workerpool0-0")
    assert row["pids"]
    project.services.stop()
    from psutil import pid_exists

    assert not any(pid_exists(pid) for pid in row["pids"])
    assert project.services.live_workloads() == []
