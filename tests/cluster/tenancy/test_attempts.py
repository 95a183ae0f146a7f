"""An attacker with a member's rights, and a member who works, on a real API server."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from components.kubernetes.queueing.given import CLAIMS
from components.kubernetes.queueing.kueue_fields import PODS
from components.kubernetes.queueing.stopping import CLASSES
from infra.engine.golang import ROOT
from rehearsal.controlplane.api import Access, ApiError, KubernetesApi, Object
from tests.cluster.tenancy.accepted_risks import ACCEPTED, BEYOND_REQUESTS
from tests.cluster.tenancy.ahead_attempts import AHEAD
from tests.cluster.tenancy.attempt import KUEUE, Accepted, Attempt, Send, body, patch, refuser
from tests.cluster.tenancy.daily_work import CONNECTIONS, WORK
from tests.cluster.tenancy.given_attempts import CLAIM, GIVEN_OBJECTS
from tests.cluster.tenancy.identity_attempts import IDENTITIES
from tests.cluster.tenancy.queue_attempts import AUTOPILOT, LEAVE, OWNER, PARENT, required
from tests.cluster.tenancy.reach_attempts import NODES, PUBLISH
from tests.cluster.tenancy.scene import HUGE, Scene, pod_spec
from tests.cluster.tenancy.stop_attempts import STAY, UNKNOWN
from tests.cluster.waiting import eventually, gone

ATTEMPTS = {
    each.name: each for each in (*LEAVE, *STAY, *AHEAD, *PUBLISH, *NODES, *IDENTITIES, *GIVEN_OBJECTS)
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=list(ATTEMPTS))
def test_an_attempt_is_refused(stand: Scene, attempt: Attempt) -> None:
    with pytest.raises(ApiError) as refused:
        attempt.send(stand)
    assert refuser(refused.value) in attempt.by, refused.value


@pytest.mark.parametrize("send", WORK.values(), ids=list(WORK))
def test_daily_work_goes_on(stand: Scene, send: Send) -> None:
    send(stand)


@pytest.mark.parametrize("send", CONNECTIONS.values(), ids=list(CONNECTIONS))
def test_connections_to_own_pods_are_let_through(stand: Scene, send: Send) -> None:
    with pytest.raises(ApiError) as no_kubelet:
        send(stand)
    assert no_kubelet.value.code != 403, no_kubelet.value
    assert "Policy" not in str(no_kubelet.value)


@pytest.mark.parametrize("attempt", ACCEPTED, ids=[each.name for each in ACCEPTED])
def test_an_accepted_risk_is_accepted(stand: Scene, attempt: Accepted) -> None:
    attempt.send(stand)


def _controller(stand: Scene, name: str) -> KubernetesApi:
    """The cluster as a controller of Kubernetes sees it."""
    access, token = stand.api.access, stand.api.token("kube-system", name)
    return KubernetesApi(Access(access.server, access.authority, token=token))


@pytest.mark.parametrize(
    ("controller", "owner"),
    [
        ("replicaset-controller", "ReplicaSet"),
        ("statefulset-controller", "StatefulSet"),
        ("job-controller", ""),
    ],
)
def test_a_controller_makes_no_pod_that_kueue_does_not_count(
    stand: Scene, controller: str, owner: str
) -> None:
    """As if a template had passed: of an object that is older than the policies."""
    with _controller(stand, controller) as acting:
        made = body(
            "Pod", labels={"kueue.x-k8s.io/queue-name": "default"}, annotations=PARENT, spec=pod_spec(HUGE)
        )
        made["metadata"]["namespace"] = stand.own
        if owner:
            reference = {"apiVersion": "apps/v1", "kind": owner, "name": "x", "uid": "x", "controller": True}
            made["metadata"]["ownerReferences"] = [reference]
        with pytest.raises(ApiError) as refused:
            acting.create(made, dry_run=True)
    assert refuser(refused.value) == PODS


@pytest.mark.parametrize("asked", [{"nodeSelector": AUTOPILOT}, {"affinity": required(AUTOPILOT)}])
def test_a_job_that_is_older_than_the_policies_gets_no_nodes_beside_the_pools(
    stand: Scene, asked: Object
) -> None:
    made = body("Pod", labels={f"{KUEUE}queue-name": "default"}, spec=pod_spec(**asked))
    made["metadata"] |= {"namespace": stand.own, "ownerReferences": stand.filled(OWNER)}
    with _controller(stand, "job-controller") as acting, pytest.raises(ApiError) as refused:
        acting.create(made, dry_run=True)
    assert refuser(refused.value) == PODS
    made["spec"] = pod_spec()
    with _controller(stand, "job-controller") as acting:
        acting.create(made, dry_run=True)


@pytest.mark.parametrize(
    ("controller", "name"),
    [("statefulset-controller", "data-own-0"), ("ephemeral-volume-controller", "home")],
)
def test_no_controller_makes_a_claim_for_a_member(stand: Scene, controller: str, name: str) -> None:
    """It would take the place of one of the stack's, whose quota is raised before the claim is made."""
    claim = body("PersistentVolumeClaim", name=name, spec=CLAIM)
    claim["metadata"]["namespace"] = stand.own
    with _controller(stand, controller) as acting, pytest.raises(ApiError) as refused:
        acting.create(claim, dry_run=True)
    assert refuser(refused.value) == CLAIMS


def test_a_class_of_an_administrator_ranks_waiting_jobs_once_it_is_known(stand: Scene) -> None:
    """A right that all accounts have names it; rights of an administrator cover each typing error."""
    uses = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloadpriorityclasses"], "verbs": ["use"]}
    role = body("ClusterRole", name="use-own", rules=[{**uses, "resourceNames": ["own"]}])
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "use-own"}
    accounts = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts"}
    bound = body("ClusterRoleBinding", name="use-own", roleRef=reference, subjects=[accounts])
    change = patch("Job", "waiting", {"metadata": {"labels": {f"{KUEUE}priority-class": "own"}}})
    made = [body("WorkloadPriorityClass", name="own", value=5), role, bound]
    authors = [stand, replace(stand, member=stand.api)]
    stand.api.create(made[0])
    try:
        assert not any(_allowed(partial(change, each)) for each in authors)
        for each in made[1:]:
            stand.api.create(each)
        for author in authors:
            eventually(partial(_allowed, partial(change, author)), "the class is known")
            unknown = patch("Job", "running", {"metadata": {"labels": UNKNOWN}})
            assert not _allowed(partial(unknown, author))
    finally:
        for each in reversed(made):
            about = each["apiVersion"], each["kind"], each["metadata"]["name"]
            stand.api.delete(*about, propagation="Background")
        gone(stand.api, made)


def _allowed(send: Callable[[], Any]) -> bool:
    try:
        send()
    except ApiError as error:
        assert refuser(error) == CLASSES
        return False
    return True


def test_no_address_is_public_at_the_request_of_an_administrator(stand: Scene) -> None:
    """The quota counts requests of administrators and controllers, too."""
    for kind in ("LoadBalancer", "NodePort"):
        made = body("Service", spec={"type": kind, "ports": [{"port": 80}]})
        made["metadata"]["namespace"] = stand.own
        with pytest.raises(ApiError) as refused:
            stand.api.create(made, dry_run=True)
        assert refuser(refused.value) == "objects"


def test_a_loop_that_creates_objects_ends_at_the_quota(stand: Scene) -> None:
    budgets = [
        body("PodDisruptionBudget", name=f"loop-{index}", spec={"maxUnavailable": 1}) for index in range(101)
    ]
    with pytest.raises(ApiError) as refused:
        for each in budgets:
            stand.member.create({**each, "metadata": {**each["metadata"], "namespace": stand.own}})
    assert refuser(refused.value) == "objects"
    stand.member.request("DELETE", f"/apis/policy/v1/namespaces/{stand.own}/poddisruptionbudgets")


@pytest.mark.parametrize(("kind", "name"), [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")])
def test_what_kubernetes_puts_into_a_namespace_comes_back(stand: Scene, kind: str, name: str) -> None:
    before: Object = stand.member.get("v1", kind, name, stand.own)
    stand.member.delete("v1", kind, name, stand.own, propagation="Background")

    def again() -> Any:
        found = stand.api.find("v1", kind, name, stand.own)
        return found if found and found["metadata"]["uid"] != before["metadata"]["uid"] else None

    assert eventually(again, f"{name} is there again")


def test_pods_of_a_deployment_wait_for_quota(stand: Scene) -> None:
    """One of the team's that Kueue cannot admit: its pods stay gated, although a controller created them."""
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "large"}},
        "template": {
            "metadata": {"labels": {"app": "large"}},
            "spec": pod_spec(HUGE, restartPolicy="Always"),
        },
    }
    made = body("Deployment", name="large", spec=spec)
    stand.member.create({**made, "metadata": {"name": "large", "namespace": stand.own}})
    pod = eventually(partial(_first, stand, "app=large"), "its pod exists")
    assert {"name": "kueue.x-k8s.io/admission"} in pod["spec"]["schedulingGates"]
    stand.member.delete("apps/v1", "Deployment", "large", stand.own, propagation="Background")
    eventually(lambda: _first(stand, "app=large") is None, "its pod is gone")


def _first(stand: Scene, labels: str) -> Object | None:
    return next(iter(stand.api.list("v1", "Pod", stand.own, labels=labels)), None)


def test_the_documentation_and_the_requests_name_the_same_risks() -> None:
    text = (ROOT / "docs" / "reference" / "tenancy.md").read_text()
    _, _, table = text.partition("## Accepted risks\n")
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
    documented = rows[1 : rows.index("part")]  # without its head and the next table
    shown = {each.risk for each in ACCEPTED}
    assert sorted(documented) == sorted({*shown, *BEYOND_REQUESTS})
    assert not shown & BEYOND_REQUESTS


def test_the_attempts_are_as_many_as_promised() -> None:
    assert len(ATTEMPTS) >= 80
    assert len(WORK) >= 20
