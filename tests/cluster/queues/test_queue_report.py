"""`trainstack queue` on a real Kueue: running and waiting jobs; for administrators and members."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from components.kubernetes.queueing.kueue import API_VERSION, QUEUE_NAME_LABEL
from components.kubernetes.queueing.quotas import TeamArgs
from infra.errors import UserError
from infra.outputs.cluster import TeamOutputs
from rehearsal.controlplane.api import Access, KubernetesApi
from rehearsal.controlplane.certificates import Authority
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.queues.tenants import RBAC
from tests.cluster.waiting import eventually
from tests.trainstack.cli.command import run
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli import queue
from trainstack.queues.report import MAX_EXEC_TIME

LEVELS = [f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3)]
# Two machines for everybody, and four in two network blocks, where Kueue itself places pods.
POOLS = [
    flavor("any", "p4d.24xlarge", 2),
    flavor("near", "p4d.24xlarge", 4, topology=LEVELS, fixed_size=True, own_queue=True),
]
TEAMS: list[TeamArgs] = [{"name": "Research", "weight": 1}, {"name": "Vision", "weight": 1}]
HOUR = {MAX_EXEC_TIME: "3600"}


@dataclass
class Seen:
    """A cluster with jobs, and the kubeconfigs of an administrator and a member."""

    lab: Lab
    logins: Mapping[str, str]

    def shown(self, who: str, *words: str) -> dict[str, Any]:
        """The queue as shown to one of them."""
        teams = tuple(
            TeamOutputs(name=name, namespace=at, queue="default") for name, at in self.lab.namespaces.items()
        )
        exported = EXPORTED.model_copy(update={"kubeconfig": self.logins[who], "teams": teams})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(queue, "deployed", lambda *_, **__: (exported, None))
            code, said = run("queue", "-s", "dev", "--format", "json", *words)
        assert code == 0, said
        found: dict[str, Any] = json.loads(said)
        return found

    def waiting(self, who: str, *words: str) -> dict[str, Any]:
        """What waits, by name."""
        return {row["job"]: row for row in self.shown(who, *words)["waiting"]}


@pytest.fixture(scope="module")
def seen(plane: ControlPlane, api: KubernetesApi) -> Iterator[Seen]:
    """Two jobs that run on a half of a node each, and one that waits for each reason there is."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl here")
    types = {"any": "p4d.24xlarge", "near": "p4d.24xlarge"}
    with (
        machines(api, POOLS[:1], types),
        machines(api, POOLS[1:], types, block=2),
        queues(api, POOLS, TEAMS) as lab,
    ):
        for team, node in (("Research", "any-0"), ("Vision", "any-1")):
            pod = {"nodeSelector": {"kubernetes.io/hostname": node}}
            lab.submit(team, f"half-{team.lower()}", gpus=4, labels=HOUR, pod=pod)
            lab.nodes(f"half-{team.lower()}")
        lab.submit("Research", "split", gpus=8, labels=HOUR)
        lab.runs("split")
        lab.submit("Research", "first", gpus=4, labels=HOUR)
        lab.refusal("first")
        # Of two that ask for the same it looks at one alone.
        lab.submit("Research", "second", gpus=4, labels=HOUR)
        near = {"kueue.x-k8s.io/podset-required-topology": LEVELS[-1]}
        lab.submit("Research", "wide", gpus=8, pods=3, labels={QUEUE_NAME_LABEL: "near"}, notes=near)
        lab.refusal("wide")
        door = {"spec": {"stopPolicy": "Hold"}}
        api.patch(API_VERSION, "LocalQueue", "default", door, lab.namespaces["Vision"])
        # Kueue gives a job no queue that is stopped: it has to be named.
        lab.submit("Vision", "held", gpus=8, labels={QUEUE_NAME_LABEL: "default"})
        eventually(lambda: lab.workload("held"), "Kueue knows the job")
        eventually(lambda: lab.pods("split"), "its pod waits for a node")
        eventually(lambda: all(_ready(lab, name) for name in ("half-research", "half-vision")), "they run")
        yield Seen(lab, {"admin": plane.kubeconfig.read_text(), "member": _member(plane, api, lab)})


def _ready(lab: Lab, name: str) -> bool:
    return lab.condition(name, "PodsReady").get("status") == "True"


def _member(plane: ControlPlane, api: KubernetesApi, lab: Lab) -> str:
    """The kubeconfig of a member of team Research only."""
    (subject,) = api.list(RBAC, "RoleBinding", lab.namespaces["Research"])[0]["subjects"]
    pair = Authority(plane.home / "certificates").sign("ada", (subject["name"],))
    access = Access(plane.access.server, plane.access.authority, pair.certificate, pair.key)
    return json.dumps(access.kubeconfig())


def test_an_administrator_sees_running_and_waiting_jobs_with_reasons(seen: Seen) -> None:
    found = seen.shown("admin")
    assert {(row["job"], row["team"], row["gpus"], *row["pools"]) for row in found["running"]} == {
        ("half-research", "Research", 4, "any"), ("half-vision", "Vision", 4, "any"),
    }  # fmt: skip
    rows = {row["job"]: row for row in found["waiting"]}
    assert {name: row["reason"]["kind"] for name, row in rows.items()} == {
        "split": "fragmentation", "first": "quota", "second": "quota", "wide": "topology",
        "held": "stopped",
    }  # fmt: skip
    facts = {"split": ("8 GPUs", "at most 4"), "first": ("4 GPUs", "0 of 16"), "wide": ("32 GPUs", "near")}
    for name, expected in facts.items():
        assert all(fact in rows[name]["reason"]["text"] for fact in expected), name
    assert ["~" in note for note in found["notes"]] == [True]


def test_places_are_those_of_kueue(seen: Seen) -> None:
    places = {name: row["place"] for name, row in seen.waiting("admin").items()}
    # Those of the same second, in which clocks of API servers count, it puts in any order.
    assert sorted(places.pop(name)["number"] for name in ("first", "second")) == [1, 2]
    assert places == {
        "split": None,  # it has its quota
        "wide": {"number": 1, "told": True},
        "held": {"number": 1, "told": False},  # its queue is stopped
    }


def test_starts_follow_from_the_ends_of_those_that_run(seen: Seen) -> None:
    found = seen.shown("admin")
    ends = {row["job"]: row["ends_by"] for row in found["running"]}
    rows = {row["job"]: row for row in found["waiting"]}
    # Each ends an hour after its admission, and has what one of the two needs.
    starts = sorted(rows[name]["estimate"]["start"] for name in ("first", "second"))
    assert starts == sorted(ends.values())
    assert rows["first"]["estimate"]["kind"] == "simulated"
    unknown = {
        "kind": "unknown",
        "start": None,
        "waits": 0,
        "why": "0 past waits of jobs like it, 59 are needed",
    }
    assert rows["held"]["estimate"] == unknown


def test_pools_have_quota_nodes_and_fragmentation(seen: Seen) -> None:
    whole, near = (
        next(row for row in seen.shown("admin")["pools"] if row["name"] == name) for name in ("any", "near")
    )
    assert (whole["gpus"], whole["used"], whole["nodes"]) == (16, 16, 2)
    assert (whole["free_on_nodes"], whole["largest_free"]) == (8, 4)
    assert 0 < whole["fragmentation"] < 1
    assert (near["gpus"], near["free"], near["largest_free"], near["fragmentation"]) == (32, 32, 8, 0)


def test_a_member_sees_the_jobs_of_the_team_with_places_and_a_note_about_the_rest(seen: Seen) -> None:
    found = seen.shown("member", "--team", "Research")
    assert [row["job"] for row in found["running"]] == ["half-research"]
    rows = {row["job"]: row for row in found["waiting"]}
    assert {name: row["reason"]["kind"] for name, row in rows.items()} == {
        "split": "nodes booting", "first": "quota", "second": "quota", "wide": "topology",
    }  # fmt: skip
    assert all(rows[name]["place"]["told"] for name in ("first", "second", "wide"))
    assert "0 of 16" in rows["first"]["reason"]["text"]
    assert {row["name"]: (row["used"], row["largest_free"]) for row in found["pools"]} == {
        "any": (16, None), "near": (0, None),
    }  # fmt: skip
    assert found["notes"][0].startswith("nodes ") and "Forbidden" in found["notes"][0]
    assert any("other teams" in note for note in found["notes"])


def test_a_member_without_a_team_option_gets_a_hint(seen: Seen) -> None:
    for options in ((), ("--team", "Vision")):
        with pytest.raises(UserError) as caught:
            seen.shown("member", *options)
        assert caught.value.codes == (("cluster-access-denied", "cluster"),)
