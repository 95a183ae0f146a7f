"""The table of Kubernetes, and what answers of a cluster become."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from policies import rules
from policies.resource import Resource, UndeterminedError
from policies.rules import CATALOG
from policies.sources.live.join import joined
from policies.sources.live.kubernetes.object_kinds import OBJECT_KINDS
from policies.sources.live.queries import AnswerItem, Answers, ApiRefusal
from policies.sources.live.records import LiveAccount, account
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import tables

CLUSTER = tables("kubernetes")
JOB, DEPLOYMENT, MAP = (
    "kubernetes:batch/v1:Job",
    "kubernetes:apps/v1:Deployment",
    "kubernetes:core/v1:ConfigMap",
)
TYPE = re.compile(r"kubernetes:[\w./-]+/v\d\w*:\w+")


def types_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from TYPE.findall(value)
    elif isinstance(value, Mapping):
        yield from (name for key in value for name in types_in(key))
    elif isinstance(value, tuple | list | set | frozenset):
        yield from (name for one in value for name in types_in(one))


def test_every_type_that_a_rule_names_is_asked_for_or_shows_as_another() -> None:
    names = [found.name for found in pkgutil.walk_packages(rules.__path__, "policies.rules.")]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    named = {*types_in(values), *(name for rule in CATALOG.rules.values() for name in types_in(rule.kinds))}
    reported = {kind.kind for kind in CLUSTER.kinds}
    assert len(named) > 50
    assert named - reported == CLUSTER.absent & named
    assert reported <= named, "what no rule looks at is not asked for"


def test_secrets_are_not_asked_for() -> None:
    assert not [sort for sort in OBJECT_KINDS if "secret" in sort.plural]
    assert all(one.right.startswith("list ") for one in CLUSTER.queries.values())


def body(kind: str, name: str, space: str = "team", **more: Any) -> dict[str, Any]:
    version, _, plain = kind.removeprefix("kubernetes:").removeprefix("core/").rpartition(":")
    about = {"name": name, **({"namespace": space} if space else {}), **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": plain, "metadata": about, **more}


def reported(*bodies: dict[str, Any], refused: Iterable[str] = ()) -> LiveAccount:
    answers = {question: Answers() for question in CLUSTER.queries}
    for one in bodies:
        (sort,) = {
            s
            for s in OBJECT_KINDS
            if s.kind == one["kind"]
            and one["apiVersion"] in (*s.versions, *(f"{s.group}/{version}" for version in s.versions))
        }
        answers[sort.query] = Answers((*answers[sort.query].items, AnswerItem(one)))
    for name in refused:
        answers[name] = Answers((), (ApiRefusal("Forbidden", "", CLUSTER.queries[name].right),))
    return account(Snapshot("kubernetes", "uid", "https://example.com", "2026-11-24T00:00:00Z", answers))


def names(found: LiveAccount) -> list[str]:
    return [str(one.id) for one in found.resources]


def owned(kind: str, version: str) -> dict[str, Any]:
    owner = {"apiVersion": version, "kind": kind, "name": "x", "uid": "1", "controller": True}
    return {"metadata": {"ownerReferences": [owner]}}


def test_an_object_is_known_by_its_kind_namespace_and_name() -> None:
    (job,) = reported(body(JOB, "train", metadata={"labels": {"team": "a"}}, spec={})).resources
    assert (job.urn, job.id, job.name) == (f"live:uid::{JOB}:team/train", "team/train", "train")
    assert (job.tags, job.region, job.origin) == ({"team": "a"}, "", "live")


def test_what_a_controller_made_is_judged_as_what_it_was_made_for() -> None:
    pod = "kubernetes:core/v1:Pod"
    found = reported(
        body("kubernetes:apps/v1:ReplicaSet", "made", **owned("Deployment", "apps/v1")),
        body(pod, "of-a-set", **owned("ReplicaSet", "apps/v1")),
        body(JOB, "of-a-train-job", **owned("JobSet", "jobset.x-k8s.io/v1beta1")),
        body(pod, "of-what-no-rule-knows", **owned("Notebook", "kubeflow.org/v1")),
        body(pod, "bare"),
    )
    assert names(found) == ["team/of-what-no-rule-knows", "team/bare"]


def test_what_is_part_of_kubernetes_is_not_judged() -> None:
    binding = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding"
    usual = {"metadata": {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}}
    found = reported(
        body("kubernetes:core/v1:Namespace", "kube-system", ""),
        body("kubernetes:core/v1:Namespace", "default", ""),
        body("kubernetes:apps/v1:DaemonSet", "aws-node", "kube-system"),
        body(MAP, "aws-auth", "kube-system", data={}),
        body(binding, "cluster-admin", "", **usual),
        body(binding, "mine", "", **usual),
        body(binding, "system:mine", ""),
    )
    assert names(found) == ["kube-system/aws-auth", "default", "mine", "system:mine"]


def test_values_that_were_not_kept_are_unknown() -> None:
    (found,) = reported(body(MAP, "a", data={"KEY": "[secret]"})).resources
    assert list(found.props["data"]) == ["KEY"]
    with pytest.raises(UndeterminedError, match=r"data\.KEY is"):
        found.props["data"]["KEY"]


def test_an_object_of_one_version_is_reported_once() -> None:
    queue = "kubernetes:kueue.x-k8s.io/{}:ClusterQueue"
    found = reported(body(queue.format("v1beta1"), "a", "", spec={}))
    assert [one.kind for one in found.resources] == [queue.format("v1beta1")]
    refused = reported(refused=["kueue.x-k8s.io.clusterqueues"]).coverage
    assert all(refused.gap(queue.format(version)) for version in ("v1beta1", "v1beta2"))


def test_cloud_resources_of_a_cluster_are_not_reported() -> None:
    coverage = reported().coverage
    assert "cloud resources" in coverage.gap("aws:s3/bucket:Bucket")
    assert "not read" in coverage.gap("kubernetes:core/v1:Secret")
    assert not coverage.gap("kubernetes:helm.sh/v3:Release")


def managed(kind: str, id: str, **asked: Any) -> Resource:
    urn = f"urn:pulumi:dev::app::{kind}::{id}"
    return Resource(kind, urn, "logical", id=id, props=asked, asked=asked, protect=True)


def test_a_state_and_its_cluster() -> None:
    queue, asked = "kubernetes:kueue.x-k8s.io/v1beta1:ClusterQueue", {"cpu": "500m", "memory": "1Gi"}
    state = [
        managed(JOB, "team/same", spec={"limits": asked}),
        managed(JOB, "team/drifted", spec={"limits": asked}),
        managed(DEPLOYMENT, "team/gone", spec={}),
        managed(queue, "of-another-version", spec={"cohort": "a"}),
        managed("kubernetes:helm.sh/v3:Release", "team/chart", chart="x"),
        managed("kubernetes:core/v1:Secret", "team/secret", data={}),
        managed("kubernetes:apps/v1:DaemonSet", "kube-system/agent", spec={}),
        replace(managed("aws:s3/bucket:Bucket", "bucket"), account="123456789012"),
    ]
    answered = reported(
        body(JOB, "same", spec={"limits": {"cpu": 0.5, "memory": "1024Mi"}, "suspend": False}),
        body(JOB, "drifted", spec={"limits": {"cpu": "500m", "memory": "2Gi"}}),
        body(JOB, "of-another-program", metadata={"labels": {"team": "b"}}),
        body(queue.replace("v1beta1", "v1beta2"), "of-another-version", "", spec={"cohortName": "a"}),
        body("kubernetes:apps/v1:DaemonSet", "agent", "kube-system", spec={}),
        body("kubernetes:apps/v1:DaemonSet", "aws-node", "kube-system", spec={}),
        refused=["core.services"],
    )
    found = joined(state, answered)
    assert [(one.what, one.resource.id, one.path) for one in found.differences] == [
        ("missing", "team/gone", ""),
        ("drifted", "team/drifted", "spec.limits.memory"),
    ]
    urns = {str(one.id): one.urn for one in found.resources}
    assert urns["team/same"] == state[0].urn and urns["kube-system/agent"] == state[6].urn
    assert "kube-system/aws-node" not in urns and urns["team/of-another-program"].startswith("live:uid:")
    assert not found.imports
