"""Accounts of a team's namespace to which an administrator gave the role of members, such as one of CI."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from components.kubernetes.queueing.given import CLAIMS, GIVEN
from components.kubernetes.queueing.kueue_fields import FIELDS, PODS
from components.kubernetes.queueing.own_pod import NAME as OWN_POD
from components.kubernetes.queueing.stopping import UNSUPPORTED
from rehearsal.controlplane.api import Access, ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.tenants import two_teams
from tests.cluster.tenancy.attempt import KINDS, KUEUE, body, refuser
from tests.cluster.tenancy.scene import HUGE, SMALL, job_spec, lasting, pod_spec
from tests.cluster.waiting import eventually, gone

RBAC = "rbac.authorization.k8s.io"
GROUP = {f"{KUEUE}pod-group-name": "old"}
COUNT = f"{KUEUE}pod-group-total-count"


class Space:
    """A team's namespace, as an administrator, a member and an account `ci` see it."""

    def __init__(self, api: KubernetesApi, member: KubernetesApi, ci: KubernetesApi, name: str) -> None:
        self.api, self.member, self.ci, self.name = api, member, ci, name

    def within(self, made: Object) -> Object:
        """An object, in the namespace."""
        return {**made, "metadata": {**made["metadata"], "namespace": self.name}}


@pytest.fixture(scope="module")
def space(plane: ControlPlane, api: KubernetesApi) -> Iterator[Space]:
    with two_teams(plane, api, "a group") as tenants:
        edit = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"}
        subject = {"kind": "ServiceAccount", "name": "ci", "namespace": tenants.own}
        made = [
            body("ServiceAccount", "ci"),
            body("RoleBinding", "ci", roleRef=edit, subjects=[subject]),
        ]
        for each in made:
            api.create({**each, "metadata": {**each["metadata"], "namespace": tenants.own}})
        access = Access(api.access.server, api.access.authority, token=api.token(tenants.own, "ci"))
        with KubernetesApi(access) as ci:
            yield Space(api, tenants.research, ci, tenants.own)


@pytest.mark.parametrize(
    ("kind", "spec"), [("Pod", pod_spec(HUGE)), ("Job", job_spec(HUGE))], ids=["Pod", "Job"]
)
def test_it_claims_no_job(space: Space, kind: str, spec: Object) -> None:
    """Kueue counts neither where the owner is a job."""
    (job,) = space.api.list("batch/v1", "Job", space.name)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    made = space.within(body(kind, spec=spec))
    about = {key: job["metadata"][key] for key in ("name", "uid")}
    made["metadata"]["ownerReferences"] = [{**owner, **about}]
    assert _refused(space.ci.create, made) in (FIELDS, PODS)
    if kind == "Pod":
        # Only the controller of Jobs makes pods of one.
        assert _refused(space.api.create, made) == PODS


def test_it_changes_nothing_that_the_stack_gave(space: Space) -> None:
    daemons = {key: value for key, value in lasting().items() if key != "replicas"}
    assert _refused(space.ci.create, space.within(body("DaemonSet", spec=daemons))) == FIELDS
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert _refused(space.ci.create, space.within(body("PersistentVolumeClaim", spec=claim))) == CLAIMS
    given = {
        "NetworkPolicy": "same-namespace-only",
        "Secret": "given",
        "PersistentVolumeClaim": "checkpoints",
    }
    for kind, name in given.items():
        url = space.api.resource(KINDS[kind], kind).url(space.name, name)
        with pytest.raises(ApiError) as refused:
            space.ci.request("DELETE", url, {"dryRun": ["All"]})
        assert refuser(refused.value) == GIVEN


def test_it_works_as_a_member_does(space: Space) -> None:
    space.ci.create(space.within(body("Job", spec=job_spec())), dry_run=True)
    waits = space.within(body("Pod", "of-ci", spec=pod_spec(HUGE)))
    space.ci.create(waits)
    # An operator labels its pods; the team's own account changes but one annotation.
    space.ci.patch("v1", "Pod", "of-ci", {"metadata": {"labels": {"completed": "true"}}}, space.name)
    access = space.api.access
    own = Access(access.server, access.authority, token=space.api.token(space.name, "default"))
    with KubernetesApi(own) as default, pytest.raises(ApiError) as refused:
        default.patch("v1", "Pod", "of-ci", {"metadata": {"labels": {"mine": "yes"}}}, space.name)
    assert refuser(refused.value) in ("RBAC", OWN_POD)
    space.ci.delete("v1", "Pod", "of-ci", space.name, propagation="Background")
    gone(space.api, [waits])


def test_a_job_of_pods_that_request_nothing_is_not_admitted(space: Space) -> None:
    """No quota counts them: 400 would take all places of the nodes."""
    spec = {**job_spec({"cpu": "0", "memory": "0"}), "parallelism": 400, "completions": 400}
    made = space.within(body("Job", "nothing", spec=spec))
    space.member.create(made)
    reason = eventually(lambda: _why_it_waits(space, "nothing"), "Kueue gives the reason")
    assert "cpu" in reason and "LimitRange" in reason, reason
    space.member.delete("batch/v1", "Job", "nothing", space.name, propagation="Background")
    gone(space.api, [made])


def _why_it_waits(space: Space, name: str) -> str:
    for workload in space.api.list("kueue.x-k8s.io/v1beta2", "Workload", space.name):
        if any(owner["name"] == name for owner in workload["metadata"].get("ownerReferences") or ()):
            rows = (workload.get("status") or {}).get("conditions") or ()
            return next((row["message"] for row in rows if row["type"] == "QuotaReserved"), "")
    return ""


@contextmanager
def _unbound(space: Space) -> Iterator[None]:
    """As before the policy: its binding is away."""
    about = KINDS["ValidatingAdmissionPolicyBinding"], "ValidatingAdmissionPolicyBinding", UNSUPPORTED
    binding = space.api.get(*about)
    space.api.delete(*about)
    probe = _grouped(space, "probe")
    try:
        eventually(lambda: _refused(space.api.create, probe) == "", "groups are accepted")
        yield
    finally:
        binding["metadata"] = {"name": UNSUPPORTED}
        space.api.create(binding)
        eventually(lambda: _refused(space.api.create, probe) == UNSUPPORTED, "groups are refused")


def _grouped(space: Space, name: str) -> Object:
    notes = {COUNT: "2", "trainstack.dev/seconds": "3600s"}
    return space.within(body("Pod", name, labels=GROUP, annotations=notes, spec=pod_spec(SMALL)))


def test_a_group_that_is_older_than_the_policy_runs_and_ends(space: Space) -> None:
    pods = [_grouped(space, name) for name in ("old-0", "old-1")]
    with _unbound(space):
        for each in pods:
            space.api.create(each)
    eventually(lambda: all(_phase(space, each) == "Running" for each in pods), "Kueue starts both")
    fewer = {"metadata": {"annotations": {COUNT: "1"}}}
    for author in (space.member, space.api):
        with pytest.raises(ApiError) as refused:
            author.patch("v1", "Pod", "old-0", fewer, space.name)
        assert refuser(refused.value) in (FIELDS, UNSUPPORTED)
    assert _refused(space.member.create, _grouped(space, "old-2")) in (FIELDS, UNSUPPORTED)
    # An administrator ends it by its Workload (docs/how-to/stuck-destroy.md).
    space.api.delete("kueue.x-k8s.io/v1beta2", "Workload", "old", space.name)
    gone(space.api, pods)


def _phase(space: Space, pod: Object) -> Any:
    found = space.api.get("v1", "Pod", pod["metadata"]["name"], space.name)
    return (found.get("status") or {}).get("phase")


def _refused(create: Any, made: Object) -> str:
    """The part of the API server that refuses a new object; empty: none."""
    try:
        create(made, dry_run=True)
    except ApiError as error:
        return refuser(error)
    return ""
