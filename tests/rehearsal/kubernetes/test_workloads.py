"""Deployments and Jobs that run: processes, addresses, names, messages, faults, ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from infra.launchers.pods import RUN_LABEL
from rehearsal.core.model import InitFailedError, Properties
from rehearsal.workloads import faults
from tests.rehearsal.kubernetes.harness import (
    ARN,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    SERVICE,
    WEB,
    Rehearsed,
    deployment,
    job,
    script_pod,
    web,
)


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def test_a_deployment_serves_on_its_own_address(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("web", {"main.py": WEB})
    key, outputs = rehearsed.create(DEPLOYMENT, web(replicas=2), "web")
    assert key == "lab/web"
    assert outputs["status"]["readyReplicas"] == 2
    rows = rehearsed.cloud.live_workloads()
    assert len({row["address"] for row in rows}) == 2
    for row in rows:
        assert row["address"].startswith("127.")
        with urllib.request.urlopen(row["urls"][0]) as answer:
            assert answer.read().decode() == row["pod"]
    rehearsed.cloud.delete(rehearsed.call(DEPLOYMENT, "web"), key, outputs)
    assert rehearsed.cloud.live_workloads() == []
    assert not rehearsed.processes()


def test_a_deployment_that_never_gets_ready_fails_with_its_log(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("web", {"main.py": "print('no database'); raise SystemExit(3)"})
    with pytest.raises(InitFailedError) as failed:
        rehearsed.create(DEPLOYMENT, web(), "web", timeout_s=8)
    text = "\n".join(failed.value.reasons)
    assert failed.value.id == "lab/web"
    assert "'web' timed out waiting to be Ready" in text
    assert "Minimum number of live Pods was not attained" in text
    # Whether it names the exit depends on the moment: at the end its container may run once more.
    assert "no database" in text
    assert rehearsed.state.get("kubernetes", DEPLOYMENT, ARN, "lab/web")


def test_a_pod_waits_while_its_folders_cannot_be_made(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("web", {"main.py": WEB})
    obstacle = rehearsed.home / "pods" / "lab"
    obstacle.parent.mkdir(parents=True)
    obstacle.touch()
    threading.Timer(1.0, obstacle.unlink).start()
    began = time.monotonic()
    rehearsed.create(DEPLOYMENT, web(), "web")
    assert time.monotonic() - began > 1.0


def test_a_crashed_process_is_started_again_on_the_same_address(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("web", {"main.py": WEB})
    rehearsed.create(DEPLOYMENT, web(), "web")
    (row,) = rehearsed.cloud.live_workloads()
    os.kill(row["pids"][-1], signal.SIGKILL)
    wait_until(lambda: rehearsed.cloud.live_workloads()[0]["restarts"] == 1)
    wait_until(lambda: rehearsed.cloud.live_workloads()[0]["ready"])
    assert rehearsed.cloud.live_workloads()[0]["address"] == row["address"]


def test_a_restarted_daemon_starts_deployments_again(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("web", {"main.py": WEB})
    rehearsed.create(DEPLOYMENT, web(), "web")
    address = rehearsed.cloud.live_workloads()[0]["address"]
    rehearsed.cloud.stop()
    assert not rehearsed.processes()
    rehearsed.fresh_cloud().restore()
    wait_until(lambda: rehearsed.cloud.live_workloads()[0]["ready"])
    assert rehearsed.cloud.live_workloads()[0]["address"] == address


def test_other_images_are_not_run_but_become_ready(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    pod = {"containers": [{"name": "c", "image": "grafana/grafana:12"}]}
    _, outputs = rehearsed.create(DEPLOYMENT, deployment("grafana", pod), "grafana")
    assert outputs["status"]["readyReplicas"] == 1
    assert "not run: image" in outputs["metadata"]["annotations"]["trainstack.dev/rehearsal"]
    assert rehearsed.cloud.live_workloads() == []
    assert [row["name"] for row in rehearsed.cloud.workloads()] == ["grafana"]


RANKS = """
import json, os, sys, pathlib
index = os.environ["JOB_COMPLETION_INDEX"]
out = pathlib.Path(os.environ["WORK_DIR"]); out.mkdir(parents=True, exist_ok=True)
facts = {"args": sys.argv[1:], "env": dict(os.environ), "cpus": sorted(os.sched_getaffinity(0))}
(out / f"{index}.json").write_text(json.dumps(facts))
"""


def test_an_indexed_job_sees_its_peers_and_shares_the_processors(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("ranks", {"main.py": RANKS, "plan.json": "{}"})
    selector = {"batch.kubernetes.io/job-name": "ranks"}
    spec = {"clusterIP": "None", "selector": selector}
    rehearsed.create(SERVICE, {"metadata": {"name": "peers", "namespace": "lab"}, "spec": spec}, "peers")
    shared = rehearsed.home / "shared"
    index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
    container = {
        "args": ["node", "--plan", "/code/plan.json"],
        "env": [
            {"name": "NODE_RANK", "valueFrom": index},
            {"name": "MASTER_ADDR", "value": "ranks-0.peers.lab.svc.cluster.local"},
            {"name": "WORK_DIR", "value": str(shared)},
        ],
    }
    pod = script_pod("ranks", container=container, subdomain="peers")
    _, outputs = rehearsed.create(
        JOB, job("ranks", pod, completions=2, parallelism=2, completionMode="Indexed"), "ranks"
    )
    assert outputs["status"]["succeeded"] == 2
    assert [row["type"] for row in outputs["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    facts = [json.loads((shared / f"{rank}.json").read_text()) for rank in (0, 1)]
    assert [fact["env"]["NODE_RANK"] for fact in facts] == ["0", "1"]
    assert facts[0]["env"]["MASTER_ADDR"] == facts[1]["env"]["MASTER_ADDR"]
    assert facts[0]["env"]["MASTER_ADDR"].startswith("127.")
    assert Path(facts[0]["args"][2]).read_text() == "{}"
    if len(os.sched_getaffinity(0)) > 1:
        assert not set(facts[0]["cpus"]) & set(facts[1]["cpus"])
    assert facts[0]["env"]["HOSTNAME"] == "ranks-0"
    assert "VIRTUAL_ENV" not in facts[0]["env"]
    # Addresses of emulated APIs, one of them named IAMCREDENTIALS, are no credentials.
    names = (name for name in facts[0]["env"] if not name.startswith("CLOUDSDK_API_ENDPOINT_OVERRIDES_"))
    assert not any("credential" in name.lower() for name in names)


VERDICT = """
import os, sys
open(os.environ["WORDS"], "w").write("FAIL: efficiency 0.41 is below 0.80 (rank 1)\\n" + "x" * 5000)
print("rank 1 is slow"); sys.exit(int(os.environ["CODE"]))
"""


def verdict(code: str, **spec: Any) -> Properties:
    env = [{"name": "WORDS", "value": "/dev/termination-log"}, {"name": "CODE", "value": code}]
    return job("gate", script_pod("gate", container={"env": env}), **spec)


def test_the_gate_fails_is_kept_and_runs_again_only_when_asked(rehearsed: Rehearsed) -> None:
    """Section 3 of the design: what the real provider does with a failed Job."""
    rehearsed.namespace()
    rehearsed.config_map("gate", {"main.py": VERDICT})
    with pytest.raises(InitFailedError) as failed:
        rehearsed.create(JOB, verdict("1"), "gate")
    text = "\n".join(failed.value.reasons)
    assert "[BackoffLimitExceeded] Job has reached the specified backoff limit" in text
    assert "FAIL: efficiency 0.41" in text
    assert len(text) < 5500
    key, outputs = failed.value.id, failed.value.outputs
    call = rehearsed.call(JOB, "gate")
    inputs = verdict("1")
    # Kept with its errors; without the annotation it is only looked at again.
    with pytest.raises(InitFailedError, match="FAIL: efficiency"):
        rehearsed.cloud.read(call, key, inputs)
    assert rehearsed.cloud.diff(call, key, inputs, outputs, inputs).changed == ()
    with pytest.raises(InitFailedError, match="FAIL: efficiency"):
        rehearsed.cloud.update(call, key, outputs, inputs, preview=False)
    assert len(list((rehearsed.home / "logs" / "lab").glob("gate-*.log"))) == 1
    # With it, the next update replaces the Job.
    again = verdict("1", annotations={"pulumi.com/replaceUnready": "true"})
    found = rehearsed.cloud.diff(call, key, inputs, outputs, again)
    assert 'metadata.annotations["pulumi.com/replaceUnready"]' in found.replaces
    assert found.delete_before_replace
    rehearsed.cloud.delete(call, key, outputs)
    assert rehearsed.cloud.read(call, key, inputs) is None
    _, passed = rehearsed.create(JOB, verdict("0"), "gate")
    assert passed["status"]["succeeded"] == 1
    # Passed and unchanged: nothing to do, also after a restart.
    asked = verdict("0", annotations={"pulumi.com/replaceUnready": "true"})
    live = {**passed, "metadata": {**passed["metadata"], "annotations": asked["metadata"]["annotations"]}}
    assert rehearsed.cloud.diff(call, key, asked, live, asked).changed == ()
    rehearsed.cloud.stop()
    rehearsed.fresh_cloud().restore()
    assert rehearsed.cloud.diff(call, key, asked, live, asked).changed == ()


def test_cancelling_ends_the_processes_of_a_job_and_is_reported(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("slow", {"main.py": "import subprocess; subprocess.run(['sleep', '600'])"})
    threading.Timer(1.0, rehearsed.cancelled.set).start()
    began = time.monotonic()
    with pytest.raises(InitFailedError, match='Resource operation was cancelled for "slow"') as failed:
        rehearsed.create(JOB, job("slow", script_pod("slow")), "slow", timeout_s=60)
    assert time.monotonic() - began < 8
    assert failed.value.outputs["status"]["conditions"][0]["reason"] == "Interrupted"
    assert not rehearsed.processes()


def test_a_failing_job_ends_its_other_pods(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    script = (
        "import os, sys, time\nif os.environ['JOB_COMPLETION_INDEX'] == '1': sys.exit(9)\ntime.sleep(600)"
    )
    rehearsed.config_map("pair", {"main.py": script})
    with pytest.raises(InitFailedError, match="exit code 9"):
        rehearsed.create(
            JOB,
            job("pair", script_pod("pair"), completions=2, parallelism=2, completionMode="Indexed"),
            "pair",
        )
    assert not rehearsed.processes()


def test_deleting_a_namespace_ends_what_runs_in_it(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("web", {"main.py": WEB})
    rehearsed.create(DEPLOYMENT, web(), "web")
    rehearsed.cloud.delete(rehearsed.call(NAMESPACE, "lab"), "lab", {})
    assert rehearsed.state.count("kubernetes") == 0
    assert not rehearsed.processes()


RANKED = """
import os, sys, time
if "LOCAL_RANK" not in os.environ:
    import subprocess
    environments = [{**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in (0, 1)]
    if FORKED:
        rank = int(os.fork() == 0)
        os.environ.update(environments[rank])
        open("/proc/self/comm", "w").write(f"rank {rank}")
    else:
        children = [subprocess.Popen([sys.executable, __file__], env=env) for env in environments]
        sys.exit(max(child.wait() for child in children))
began, steps = time.monotonic(), 0
while time.monotonic() - began < 2.0:
    t = time.monotonic(); time.sleep(0.001); steps += time.monotonic() - t < 0.005
os.write(1, f"rank {os.environ['RANK']} {steps}\\n".encode())  # at once: both ranks write to one log
if FORKED and os.environ["RANK"] == "0":
    os.wait()
"""


@pytest.mark.alone
@pytest.mark.parametrize("forked", [False, True])
def test_a_slow_rank_is_stopped_and_continued_from_outside(rehearsed: Rehearsed, forked: bool) -> None:
    rehearsed.namespace()
    rehearsed.config_map("ranked", {"main.py": f"FORKED = {forked}{RANKED}"})
    (rehearsed.home / "faults.json").write_text('{"smoke": {"slow_rank": 1, "duty": 0.3}}')
    ranked = job("ranked", script_pod("ranked"))
    ranked["spec"]["template"]["metadata"] = {"labels": {RUN_LABEL: "ranked"}}
    (container,) = ranked["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "RANK", "value": "1"}]  # of the launcher: the index of a PyTorchJob's pod
    rehearsed.create(JOB, ranked, "ranked")
    log = next((rehearsed.home / "logs" / "lab").glob("ranked-*.log"))
    wait_until(lambda: "was stopped" in log.read_text())
    lines = log.read_text().splitlines()
    steps = {line.split()[1]: int(line.split()[2]) for line in lines if line.startswith("rank ")}
    assert steps["1"] < 0.6 * steps["0"]
    stopped = next(line for line in lines if "was stopped" in line)
    assert int(stopped.split("was stopped ")[1].split()[0]) > 30
    assert any("was stopped" in note for row in rehearsed.cloud.workloads() for note in row["notes"])


def test_pods_of_other_jobs_are_left_alone(rehearsed: Rehearsed) -> None:
    assert faults.RUN_LABEL == RUN_LABEL
    rehearsed.namespace()
    rehearsed.config_map("ranked", {"main.py": f"FORKED = False{RANKED}"})
    (rehearsed.home / "faults.json").write_text('{"smoke": {"slow_rank": 1, "duty": 0.3}}')
    rehearsed.create(JOB, job("ranked", script_pod("ranked")), "ranked")
    assert [row["notes"] for row in rehearsed.cloud.workloads()] == [[]]


def test_nothing_survives_a_killed_daemon(tmp_path: Path) -> None:
    """The daemon's stand-in is killed with SIGKILL; the container and a grandchild in its own session end."""
    script = tmp_path / "main.py"
    script.write_text(
        "import subprocess, time; subprocess.Popen(['setsid', 'sleep', '600']); time.sleep(600)"
    )
    daemon = (
        "import sys, time, pathlib\n"
        "from rehearsal.workloads.process import ContainerProcess\n"
        "from rehearsal.workloads.translate import ProcessPlan\n"
        f"command = (sys.executable, {str(script)!r})\n"
        "plan = ProcessPlan(command, {'PATH': '/usr/bin:/bin'}, pathlib.Path('/'))\n"
        f"process = ContainerProcess(plan, pathlib.Path({str(tmp_path / 'log')!r}), [], 5.0)\n"
        "while len(process.pids()) < 2: time.sleep(0.02)\n"
        "print(process.supervisor_pid, *process.pids(), flush=True)\n"
        "time.sleep(600)\n"
    )
    stand_in = subprocess.Popen([sys.executable, "-c", daemon], stdout=subprocess.PIPE, text=True)
    assert stand_in.stdout is not None
    pids = [int(word) for word in stand_in.stdout.readline().split()]
    assert len(pids) == 3
    stand_in.kill()
    stand_in.wait()
    stand_in.stdout.close()
    wait_until(lambda: not any(_alive(pid) for pid in pids), 5)


def _alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
