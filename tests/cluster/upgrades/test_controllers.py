"""Controllers are upgraded while jobs run, wait and are suspended: no run ends, none is lost.

Kueue 0.18.3, JobSet 0.11.1 and Trainer 2.2.1 become Kueue 0.19.2, JobSet 0.12.0 and Trainer 2.3.0, in the
order of a stack. The controllers are real; pods run on KWOK.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from components.kubernetes.training import trainer
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import ApiError, Object
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from rehearsal.controlplane.processes import StartError
from tests.cluster.queues.lab import Lab
from tests.cluster.upgrades.installing import installer
from tests.cluster.upgrades.jobs_in_use import (
    CRD,
    KUEUE,
    TRAINER_NEXT,
    every,
    in_use,
    install_older,
    job_set,
    other,
    pods,
    train_job,
    upgrade_definitions,
    workloads,
)  # fmt: skip
from tools.definitions import of_folder, packed

pytestmark = [pytest.mark.more, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with the older releases."""
    with running(ControlPlaneOptions(tmp_path_factory.mktemp("upgrade") / "run")) as plane:
        install_older(plane)
        yield plane


@pytest.fixture
def lived(old: ControlPlane) -> Iterator[Lab]:
    with in_use(old) as lab:
        yield lab


def test_an_upgrade_ends_no_run_and_loses_no_workload(old: ControlPlane, lived: Lab, tmp_path: Path) -> None:
    api, namespace = lived.api, lived.namespaces["Research"]
    before, queued = pods(lived), workloads(lived)
    assert len(before) == 3 and {phase for _, _, phase in before.values()} == {"Running"}
    assert len(queued) == 5

    # The older definitions are those of the older charts.
    (older,) = of_folder(other("jobset-before")[1] / "crds")
    assert api.get(*CRD, older["metadata"]["name"])["spec"]["versions"] == older["spec"]["versions"]

    upgrade_definitions(api, "jobset", tmp_path)
    assert pods(lived) == before
    (source,) = binaries.files_of("jobset")
    (newer,) = of_folder(source / "crds")
    assert api.get(*CRD, newer["metadata"]["name"])["spec"]["versions"] == newer["spec"]["versions"]
    old.install("jobset", trainer.JOBSET_VALUES, skip_crds=True)
    assert pods(lived) == before

    # Definitions of the next Trainer, as `tools.definitions` packs them.
    program, chart = other("kubeflow-trainer-next")
    next_ones = tmp_path / "next.json.xz"
    with installer(api, trainer.CHART, tmp_path) as job:
        next_ones.write_bytes(packed(trainer_definitions(chart)))
        code, message = job.run(definitions=next_ones, version="2.3.0")
        assert code == 0, message
    old.install(trainer.CHART, TRAINER_NEXT, chart=chart, program=program)
    assert pods(lived) == before

    # A release whose program does not start, and the control plane that the next try finds.
    with pytest.raises(StartError):
        old.install("kueue", KUEUE, program=Path("/bin/false"))
    assert pods(lived) == before and workloads(lived) == queued
    upgrade_definitions(api, "kueue", tmp_path)
    old.install("kueue", KUEUE, skip_crds=True)
    assert pods(lived) == before
    assert {name: uid for name, (uid, _) in workloads(lived).items()} == {
        name: uid for name, (uid, _) in queued.items()
    }

    # Both versions are read: the conversion webhook is the new one's.
    names = {row["metadata"]["name"] for row in every(lived, "kueue.x-k8s.io/v1beta1")}
    assert names == set(queued)
    for row in api.list(*CRD):
        if row["spec"]["group"] == "kueue.x-k8s.io":
            assert row["status"]["storedVersions"] == ["v1beta2"]

    # The queue moves on, by the new controllers.
    assert not lived.admitted("waits") and not lived.admitted("held")
    lived.finish("runs")
    lived.nodes("waits", 2)
    kept = {name: row for name, row in pods(lived).items() if not name.startswith(("runs", "waits"))}
    assert kept == {name: row for name, row in before.items() if not name.startswith("runs")}
    lived.finish("waits")
    lived.create(namespace, train_job("after"))
    lived.jobs["after-node-0"] = namespace
    lived.runs("after")
    lived.nodes("after-node-0")
    with pytest.raises(ApiError):
        lived.create(namespace, {**job_set("bad"), "spec": {"network": {"subdomain": "no.label"}}})


def trainer_definitions(chart: Path) -> list[Object]:
    """The definitions that Trainer 2.3.0 has as templates, without their condition."""
    found = []
    for path in sorted((chart / "templates" / "crd").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        body = "\n".join(line for line in text.split("---\n", 1)[1].splitlines() if not line.startswith("{{"))
        found += [each for each in yaml.load_all(body, Loader=yaml.CSafeLoader) if each]
    return found
