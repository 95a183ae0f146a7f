"""`trainstack queue` on a real Kueue: running and waiting jobs; for administrators and members."""

import base64
import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.gpu_ledger import book_text
from agents.gpu_ledger.book_store import KEY, NAME
from components.kubernetes.queueing.kueue import API_VERSION, QUEUE_NAME_LABEL, TEAM_NAME
from components.kubernetes.queueing.quotas import GPU, TeamArgs
from components.kubernetes.queueing.tenancy import GIVEN, GIVEN_LABEL
from infra.errors import UserError
from infra.outputs.cluster import TeamOutputs
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues import members
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.waiting import eventually
from tests.trainstack.cli.command import run, run_json
from tests.trainstack.cli.test_access import EXPORTED
from tests.trainstack.ledger.test_ledger_command import MONTH, book
from trainstack.cli import scope
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
            patch.setattr(scope, "with_cluster", lambda *_, **__: (exported, None))
            code, said = run("queue", "-s", "dev", "--format", "json", *words)
        assert code == 0, said
        found: dict[str, Any] = json.loads(said)
        return found

    def own_name(self, team: str) -> str:
        """The name that the stack of this test gives a team, from its namespace."""
        about = self.lab.api.get("v1", "Namespace", self.lab.namespaces[team])["metadata"]
        return str(about["annotations"][TEAM_NAME])

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
        eventually(lambda: _reserved(api) == 16, "Kueue has counted what they hold")
        yield Seen(lab, {"admin": plane.kubeconfig.read_text(), "member": _member(plane, api, lab)})


def _ready(lab: Lab, name: str) -> bool:
    return lab.condition(name, "PodsReady").get("status") == "True"


def _reserved(api: KubernetesApi) -> int:
    """GPUs that the queues report as held: they do so a moment after the admission."""
    return sum(
        int(row.get("total", 0))
        for queue in api.list(API_VERSION, "ClusterQueue")
        for flavor in queue.get("status", {}).get("flavorsReservation", ())
        for row in flavor["resources"]
        if row["name"] == GPU
    )


def _member(plane: ControlPlane, api: KubernetesApi, lab: Lab) -> str:
    """The kubeconfig of a member of team Research only."""
    return json.dumps(members.member(plane, api, lab.namespaces["Research"]).kubeconfig())


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
        assert all(fact in rows[name]["reason"]["text"] for fact in expected), rows[name]
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


@pytest.fixture
def config(seen: Seen, tmp_path: Path) -> Callable[..., Path]:
    """Makes the file that an administrator sends to a member: their kubeconfig, with a namespace."""

    def made(who: str, namespace: str = "", server: str = "") -> Path:
        body = json.loads(seen.logins[who]) if who == "member" else yaml.safe_load(seen.logins[who])
        for row in body["contexts"] if namespace else ():
            row["context"]["namespace"] = namespace
        for row in body["clusters"] if server else ():
            row["cluster"]["server"] = server
        file = tmp_path / "kubeconfig.yaml"
        file.write_text(json.dumps(body))
        return file

    return made


def test_a_kubeconfig_is_all_that_a_member_needs(
    seen: Seen, config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a stack, its file or its state: the same rows as with them."""
    namespace = seen.lab.namespaces["Research"]
    with_stack = seen.shown("member", "--team", "Research")
    name = seen.own_name("Research")
    monkeypatch.setenv("KUBECONFIG", str(config("member", namespace)))
    for words in ((), ("--team", name), ("--namespace", namespace)):
        _, found = run_json("queue", *words)
        assert found["stack"] == "trainstack"  # the context
        rows = [*found["running"], *found["waiting"]]
        assert {row.pop("team") for row in rows} == {name}
        expected = [*with_stack["running"], *with_stack["waiting"]]
        assert rows == [{key: row[key] for key in row if key != "team"} for row in expected]
        assert (found["pools"], found["notes"]) == (with_stack["pools"], with_stack["notes"])
    monkeypatch.delenv("KUBECONFIG")
    found = run_json("queue", "--kubeconfig", str(config("member")), "-t", name)[1]
    assert [row["job"] for row in found["running"]] == ["half-research"]


def test_an_administrator_sees_all_teams_with_a_kubeconfig(seen: Seen, config: Callable[..., Path]) -> None:
    whole = run_json("queue", "--kubeconfig", str(config("admin")))[1]
    assert [row["job"] for row in whole["running"]] == [row["job"] for row in seen.shown("admin")["running"]]
    file = str(config("admin", seen.lab.namespaces["Vision"]))
    assert {row["team"] for row in run_json("queue", "--kubeconfig", file)[1]["running"]} == {
        seen.own_name("Vision")
    }
    assert run_json("queue", "--kubeconfig", file, "-A")[1]["running"] == whole["running"]


@pytest.mark.parametrize("command", ["queue", "ledger"])
def test_what_a_kubeconfig_lacks_is_named(
    seen: Seen, config: Callable[..., Path], command: str, tmp_path: Path
) -> None:
    """No rights, another team, no team, another cluster, no cluster, no kubeconfig."""
    vision = seen.lab.namespaces["Vision"]
    empty = tmp_path / "empty"
    empty.write_text("{}")
    cases: list[tuple[Callable[[], Path], tuple[str, ...], str, str]] = [
        (lambda: config("member"), (), "cluster-access-denied", "cluster"),
        (lambda: config("member", vision), (), "cluster-access-denied", "context"),
        (lambda: config("member"), ("-t", "Vision"), "cluster-access-denied", "--team"),
        (lambda: config("member"), ("-n", "no-such"), "cluster-access-denied", "--namespace"),
        (lambda: config("admin"), ("-n", "kube-system"), "unknown-team", "--namespace"),
        (lambda: config("admin"), ("-t", "Robotics"), "unknown-team", "--team"),
        (lambda: config("admin"), ("-n", "../pods"), "namespace-invalid", "--namespace"),
        (lambda: config("admin"), ("-t", "!"), "unknown-team", "--team"),
        (lambda: config("member", server="https://127.0.0.1:1"), (), "cluster-kinds-not-readable", "cluster"),
        (lambda: config("member"), ("--context", "x"), "kubeconfig-without-cluster", "--context"),
        (lambda: empty, (), "kubeconfig-without-cluster", "--kubeconfig"),
    ]
    for file, words, code, path in cases:
        with pytest.raises(UserError) as caught:
            run(command, "--kubeconfig", str(file()), *words)
        assert caught.value.codes == ((code, path),), words


def test_a_member_reads_the_book_of_the_team_with_a_kubeconfig(
    seen: Seen, config: Callable[..., Path]
) -> None:
    own, other = (seen.lab.namespaces[team] for team in ("Research", "Vision"))
    content = base64.b64encode(gzip.compress(book_text.text(book()).encode())).decode()
    about = {"name": NAME, "namespace": own, "labels": {GIVEN_LABEL: GIVEN}}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "binaryData": {KEY: content}}
    seen.lab.api.create(made)
    try:
        words = ("ledger", "--month", MONTH, "--kubeconfig")
        (team,) = run_json(*words, str(config("member", own)))[1]["teams"]
        assert sum(line["held_hours"] for line in team["lines"]) == 16
        assert team["team"] == seen.own_name("Research")
        # An administrator gets the books that exist, and the name of the one that does not.
        with pytest.raises(UserError) as caught:
            run(*words, str(config("admin")))
        assert caught.value.codes == (("ledger-book-missing", "team"),)
        assert [one.value for one in caught.value.problems] == [seen.own_name("Vision")]
        with pytest.raises(UserError) as caught:
            run(*words, str(config("member", own)), "-n", other)
        assert caught.value.codes == (("cluster-access-denied", "--namespace"),)
    finally:
        seen.lab.api.delete("v1", "ConfigMap", NAME, own)


def test_a_job_of_a_hostile_member_neither_breaks_nor_forges_the_report(
    plane: ControlPlane, seen: Seen, config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest deadline that the API server takes, and an image whose name moves the cursor."""
    monkeypatch.setenv("COLUMNS", "400")  # each job in one line
    lab, own = seen.lab, seen.lab.namespaces["Research"]
    late = {"trainstack.dev/start-seconds": "3600s"}
    image = "x\x1b[2J\rrunning (0)\n\u202eoffline"
    with KubernetesApi(members.member(plane, lab.api, own)) as member:
        for name, gpus, spec in (
            ("hostile", "1", {}), ("endless", "800", {"activeDeadlineSeconds": 2**63 - 1})
        ):  # fmt: skip
            container = {"name": "main", "image": image, "resources": {"limits": {GPU: gpus}}}
            tolerant = {"tolerations": [{"key": GPU, "operator": "Exists"}]}
            pod = {"containers": [container], "restartPolicy": "Never", **tolerant}
            about = {"name": name, "namespace": own, "labels": {QUEUE_NAME_LABEL: "near"}}
            member.create({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": about,
                "spec": {"template": {"metadata": {"annotations": late}, "spec": pod}, **spec},
            })  # fmt: skip
    lab.jobs.update(hostile=own, endless=own)
    eventually(lambda: lab.workload("endless"), "Kueue knows the job")
    try:
        (started,) = eventually(lambda: lab.pods("hostile"), lambda: lab.workload("hostile"))
        # As a kubelet reports it (kubernetes v1.36.2 pkg/kubelet/images/image_manager.go).
        waiting = {"reason": "InvalidImageName", "message": f'Failed to apply default image tag "{image}"'}
        state = {
            "name": "main", "image": image, "imageID": "", "ready": False, "restartCount": 0,
            "state": {"waiting": waiting},
        }  # fmt: skip
        lab.api.patch(
            "v1", "Pod", started["metadata"]["name"],
            {"status": {"containerStatuses": [state]}}, own, subresource="status",
        )  # fmt: skip
        for who in ("member", "admin"):
            code, shown = run("queue", "--kubeconfig", str(config(who, own)))
            (line,) = [line for line in shown.splitlines() if "hostile" in line]
            assert code == 0 and "image: InvalidImageName" in line and "offline" in line
            assert not {"\x1b", "\r", "\u202e"} & {*shown}
            _, found = run_json("queue", "--kubeconfig", str(config(who, own)))
            (row,) = [row for row in found["waiting"] if row["job"] == "hostile"]
            assert image in row["reason"]["text"]  # programs get it as it is
            assert [row["job"] for row in found["waiting"] if row["job"] == "endless"]
    finally:
        for name in ("hostile", "endless"):
            lab.api.delete("batch/v1", "Job", name, own, propagation="Background")


def test_a_member_without_a_team_option_gets_a_hint(seen: Seen) -> None:
    for options in ((), ("--team", "Vision")):
        with pytest.raises(UserError) as caught:
            seen.shown("member", *options)
        assert caught.value.codes == (("cluster-access-denied", "cluster"),)
