"""The control plane is lost in the middle of an upgrade, which is continued: no job ends, none is lost."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from components.kubernetes.charts import charts
from components.kubernetes.training import trainer
from infra.clouds.kubectl import ClusterApi, connected
from rehearsal.controlplane import binaries
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from rehearsal.controlplane.nodes import KwokPool, pool_nodes
from rehearsal.controlplane.processes import StartError
from tests.cluster.upgrades.jobs_in_use import (
    CRD,
    KUEUE,
    in_use,
    install_older,
    other,
    pods,
    upgrade_definitions,
    workloads,
)  # fmt: skip
from tests.cluster.waiting import eventually
from trainstack.cli.operations.jobs_in_use import JobsInUse
from trainstack.plans import releases

pytestmark = [pytest.mark.more, pytest.mark.timeout(600)]
NAME = "jobset"
SPACE = charts()[NAME].namespace
BUSY = "another operation (install/upgrade/rollback) is in progress"


def lose(plane: ControlPlane) -> None:
    """Kill the API server; the rest of the control plane follows it."""
    children = psutil.Process(plane.process.pid).children(recursive=True)
    (server,) = [child for child in children if child.name() == "kube-apiserver"]
    server.kill()
    plane.process.wait(30)


def kept(home: Path) -> contextlib.AbstractContextManager[ControlPlane]:
    """The control plane with the objects of the lost one, at its address."""
    return running(ControlPlaneOptions(home, keep=True))


def test_a_queue_between_definitions_and_controller_loses_nothing(tmp_path: Path) -> None:
    home = tmp_path / "run"
    with contextlib.ExitStack() as until:
        with running(ControlPlaneOptions(home)) as lost:
            install_older(lost)
            in_the_end = in_use(lost)
            lab = in_the_end.__enter__()
            before, queued = pods(lab), workloads(lab)
            assert len(before) == 3 and len(queued) == 5
            upgrade_definitions(lab.api, NAME, tmp_path)
            lost.install(NAME, trainer.JOBSET_VALUES, skip_crds=True)
            upgrade_definitions(lab.api, "kueue", tmp_path)
            older = lab.api.get(*CRD, "workloads.kueue.x-k8s.io")["metadata"]["generation"]
            with ThreadPoolExecutor(1) as threads:
                going = threads.submit(lost.install, "kueue", KUEUE, skip_crds=True)
                eventually(
                    lambda: lab.api.get(*CRD, "workloads.kueue.x-k8s.io")["metadata"]["generation"] > older,
                    "the chart's definitions are installed",
                )
                lose(lost)
                with contextlib.suppress(StartError):
                    going.result()
        plane = until.enter_context(kept(home))
        until.push(in_the_end)
        assert {name: row[:2] for name, row in pods(lab).items()} == {
            name: row[:2] for name, row in before.items()
        }
        # The next `up`: what was done already changes nothing.
        upgrade_definitions(lab.api, NAME, tmp_path)
        plane.install(NAME, trainer.JOBSET_VALUES, skip_crds=True)
        plane.install(trainer.CHART, trainer.VALUES)
        upgrade_definitions(lab.api, "kueue", tmp_path)
        plane.install("kueue", KUEUE, skip_crds=True)
        assert pods(lab) == before
        assert {name: uid for name, (uid, _) in workloads(lab).items()} == {
            name: uid for name, (uid, _) in queued.items()
        }
        # The queue moves on, by the new controller.
        assert not lab.admitted("waits") and not lab.admitted("held")
        lab.finish("runs")
        lab.nodes("waits", 2)


def helm(plane: ControlPlane, chart: Path, values: object, *more: str) -> "subprocess.Popen[str]":
    """Start an upgrade of the release, or its install."""
    found = binaries.ready()
    assert found
    process = subprocess.Popen(
        [found["helm"], "upgrade", NAME, chart, "--install", "--namespace", SPACE, "--create-namespace",
         "--values", "-", *more],
        env={"KUBECONFIG": str(plane.kubeconfig), "HOME": str(plane.home)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    process.stdin.write(json.dumps(values))
    process.stdin.close()
    process.stdin = None
    return process


def done(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit code and errors of Helm."""
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors


def pending(cluster: ClusterApi) -> list[releases.PendingRelease]:
    """The release, where it is pending."""
    return releases.HelmRecords(cluster, {(SPACE, NAME)}).pending()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The folder of a control plane that was lost while Helm upgraded a release, one operation before."""
    folder, (_, chart) = tmp_path / "run", other(f"{NAME}-before")
    (newer,) = binaries.files_of(NAME)
    waits = ("--wait", "--timeout")
    with running(ControlPlaneOptions(folder)) as plane, plane.api() as api:
        for body in pool_nodes(KwokPool("system", "p4d.24xlarge", 1)):
            api.create(body)
        assert done(helm(plane, chart, trainer.JOBSET_VALUES, *waits, "60s")) == (0, "")
        with connected(None, plane.kubeconfig, writing=True) as cluster:
            api.patch("v1", "Node", "system-0", {"spec": {"unschedulable": True}})
            # An upgrade that is not lost ends by itself: it is waited for, and its record stays.
            process = helm(plane, newer, trainer.JOBSET_VALUES, *waits, "4s")
            found = eventually(lambda: pending(cluster))
            said: list[str] = []
            releases.settle(cluster, found, said.append, limit_s=120)
            assert done(process)[0] == 1 and len(said) == 1
            assert api.find("v1", "Secret", f"sh.helm.release.v1.{NAME}.v2", SPACE)
            process = helm(plane, newer, trainer.JOBSET_VALUES, "--atomic", "--timeout", "60s")
            eventually(lambda: pending(cluster))
        lose(plane)
        assert done(process)[0] == 1
    yield folder


def test_a_release_that_stayed_pending_is_upgraded_by_the_next_operation(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (newer,) = binaries.files_of(NAME)
    with (
        kept(home) as plane,
        plane.api() as api,
        connected(None, plane.kubeconfig, writing=True) as cluster,
    ):
        api.patch("v1", "Node", "system-0", {"spec": {"unschedulable": False}})
        code, errors = done(helm(plane, newer, trainer.JOBSET_VALUES))
        assert code == 1 and BUSY in errors
        (left,) = pending(cluster)
        assert (left.name, left.namespace, left.status) == (NAME, SPACE, "pending-upgrade")
        # Of others, nothing is touched.
        assert releases.HelmRecords(cluster, {(SPACE, "other"), ("other", NAME)}).pending() == []
        jobs = JobsInUse(cluster, pending=[left])
        assert jobs.drains
        jobs.drain(now=True)
        assert str(left) in capsys.readouterr().out
        assert done(helm(plane, newer, trainer.JOBSET_VALUES, "--atomic", "--timeout", "120s")) == (0, "")
        assert pending(cluster) == []
