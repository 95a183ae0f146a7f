"""Teams and pools that are removed, renamed and changed by plain `pulumi up` while jobs run."""

from typing import Any

import pytest

from components.kubernetes.queueing.kueue import API_VERSION
from tests.cluster.lived_in.stack import LivedIn
from tests.cluster.lived_in.users import APPLIED, RESEARCH, VISION, Users
from tests.rehearsal.day2.changes import pool

pytestmark = [pytest.mark.timeout(300), pytest.mark.more]
QUEUE = (API_VERSION, "ClusterQueue")


def _without(name: str) -> Any:
    def team_leaves(spec: Any) -> None:
        spec["teams"] = [team for team in spec["teams"] if team["name"] != name]

    return team_leaves


def _renamed(spec: Any) -> None:
    (team,) = (team for team in spec["teams"] if team["name"] == "Vision")
    team.update(name="Perception", folder="vision")


def _quotas(spec: Any) -> None:
    for team, gpus in zip(
        spec["teams"], ({"a100": 16, "l4": 1}, {"a100": 0, "l4": 1}, {"a100": 0, "l4": 6}), strict=True
    ):
        team["gpus"] = gpus


def test_nothing_restarts_without_a_change(lived: LivedIn, users: Users) -> None:
    users.job(RESEARCH, "train", pods=2, claim="checkpoints")
    users.job_set(APPLIED, "gang")
    users.reach({(RESEARCH, "train"): "running", (APPLIED, "gang"): "running"})
    before = users.pods()
    assert lived.up().keys() == {"same"}
    assert users.pods() == before


def test_a_removed_team_ends_with_its_jobs_and_no_other_job(
    lived: LivedIn, users: Users, tmp_path: Any
) -> None:
    users.job(RESEARCH, "train", pods=2, claim="checkpoints")
    users.checkpointing(VISION, "saves", str(tmp_path / "saved"))
    users.job(VISION, "mounts", claim="home")
    users.job(VISION, "waits", requests={"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}, pods=12)
    users.notebook(VISION, "notebook", claim="home")
    users.job_set(VISION, "gang")
    users.finished(VISION, 3)
    running = dict.fromkeys(
        [(VISION, "saves"), (VISION, "mounts"), (VISION, "gang"), (VISION, "notebook")], "running"
    )
    users.reach({**running, (RESEARCH, "train"): "running", (VISION, "waits"): "waiting"})
    others = users.pods([RESEARCH])
    lived.up(_without("Vision"))
    assert lived.api.find("v1", "Namespace", VISION) is None
    assert not [one for one in lived.api.list(*QUEUE) if "vision" in one["metadata"]["name"]]
    assert not [one for one in lived.api.list("v1", "PersistentVolume") if VISION in one["metadata"]["name"]]
    assert (tmp_path / "saved").read_text() == "saved"
    assert users.pods([RESEARCH]) == others


def test_a_renamed_team_keeps_its_data_and_starts_empty(lived: LivedIn, users: Users) -> None:
    users.job(VISION, "train", claim="home")
    users.job(APPLIED, "other")
    users.reach({(VISION, "train"): "running", (APPLIED, "other"): "running"})
    handles = _handles(lived, VISION)
    others = users.pods([APPLIED])
    lived.up(_renamed)
    assert lived.api.find("v1", "Namespace", VISION) is None
    assert _handles(lived, "team-perception") == handles
    assert users.pods([APPLIED]) == others


def _handles(lived: LivedIn, namespace: str) -> dict[str, str]:
    """The file systems behind the claims of a namespace."""
    return {
        one["spec"]["claimRef"]["name"]: one["spec"]["csi"]["volumeHandle"]
        for one in lived.api.list("v1", "PersistentVolume")
        if one["spec"]["claimRef"]["namespace"] == namespace
    }


def test_lower_quotas_and_a_pool_behind_its_own_queue_end_no_job(lived: LivedIn, users: Users) -> None:
    gpu = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    users.job(VISION, "train", pods=4, requests=gpu)
    users.job(RESEARCH, "train", pods=2, requests={**gpu, "nvidia.com/gpu": "8"}, queue="a100")
    users.reach({(VISION, "train"): "running", (RESEARCH, "train"): "running"})
    before = users.pods()
    lived.up(_quotas)
    lived.up(pool("l4", own_queue=True))
    assert users.pods() == before
    assert users.states() == {(VISION, "train"): "running", (RESEARCH, "train"): "running"}
    users.job(APPLIED, "later", requests=gpu, queue="l4")
    users.reach({(APPLIED, "later"): "running"})


def test_monitoring_off_ends_no_job(lived: LivedIn, users: Users) -> None:
    users.job(RESEARCH, "train", pods=2)
    users.reach({(RESEARCH, "train"): "running"})
    before = users.pods()
    lived.up(lambda spec: spec["layout"].update(monitoring={"kind": "none"}, idle_gpus=None))
    assert users.pods() == before
