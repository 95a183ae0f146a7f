"""Policies that let Kueue stop every job, and count it until its pods have ended (pure).

Kueue stops a job (preemption, deactivation, time limits, lost quota) late in its reconciliation: an error
before that keeps the job running (docs/adr/0044).
"""

import json
from collections.abc import Iterator

from agents.clusters.dispatch import CLUSTER_LABEL, LOST_TAINT
from agents.clusters.leaving import LEAVING_TAINT
from components.kubernetes.queueing.kueue import PRIORITIES, PRIORITY_LABEL
from components.kubernetes.queueing.kueue_fields import (
    DESCRIBED,
    GROUPED,
    JOBSET,
    KUEUE,
    NEW,
    described,
    unchanged,
)
from components.kubernetes.queueing.policy import Mutation, Policy, rule
from components.kubernetes.queueing.room import ELSEWHERE

UNSUPPORTED, CLASSES = "trainstack-unsupported", "trainstack-priority-classes"
ORPHANS, FORCED, GRACE = "trainstack-orphans", "trainstack-forced-deletions", "trainstack-grace"


def policies(member: str, *, sends: bool = False) -> list[Policy]:
    """All of them; `member`: CEL, true for requests of members. `sends`: jobs run on other clusters."""
    return [_unsupported(sends=sends), *_deletions(member), _classes()]


def mutation() -> Mutation:
    """A grace period of 0 becomes 1 second, as a negative one does.

    With 0 every deletion is a forced one, by all authors: the quota and the devices of a pod are given to
    the next one while its containers still run (kubernetes/kubernetes#104824, #141471).
    """
    return Mutation(
        GRACE,
        [rule("", "pods")],
        ["[JSONPatch{op: 'replace', path: '/spec/terminationGracePeriodSeconds', value: 1}]"],
        condition="object.spec.?terminationGracePeriodSeconds.orValue(1) == 0",
        failure_policy="Fail",
    )


def _unsupported(*, sends: bool) -> Policy:
    """Fields that Kueue admits and then cannot stop, or that never get a pod; of all authors.

    Kueue declares a group of pods finished, or leaves a pod of it alone, by annotations of any of its pods,
    and counts one pod of a role for all (kubernetes-sigs/kueue v0.19.2 pkg/controller/jobs/pod; #13382).
    JobSet writes rules about pods of other namespaces, which the quota refuses, for an exclusive topology
    (JobSet v0.12.0 pkg/webhooks/pod_webhook.go). Objects that are older keep what they have.
    """
    exclusive = f"key in ['alpha.{JOBSET}exclusive-topology', 'alpha.{JOBSET}node-selector']"
    own = "kubernetes.io/job-controller"
    # Kueue writes this into jobs that other clusters run: no controller of this cluster may make their pods.
    makers = (
        f"in (request.kind.kind == 'Job' ? ['{own}', '{ELSEWHERE}'] : ['{own}'])" if sends else f"== '{own}'"
    )
    jobs = "(request.kind.kind == 'Job' ? variables.described : variables.templates)"
    return Policy(
        UNSUPPORTED,
        DESCRIBED,
        [
            *(
                (
                    unchanged(field, GROUPED),
                    f"no groups of pods ({field} {KUEUE}pod-group-*): use a Job (parallelism) or a JobSet",
                )
                for field in ("labels", "annotations")
            ),
            (
                unchanged("annotations", exclusive),
                f"alpha.{JOBSET}exclusive-topology never gets a pod here: annotate the pods of the template "
                f"with {KUEUE}podset-required-topology",
            ),
            (
                f"!({NEW}) || {jobs}.all(group, group.all(one,"
                f" one.?spec.?managedBy.orValue('{own}') {makers}))",
                f"no controller makes pods of such a Job: leave managedBy out ({own})",
            ),
            *([_goes_where_taints_allow()] if sends else []),
        ],
        described(),
    )


def _goes_where_taints_allow() -> tuple[str, str]:
    """No pod tolerates the taints of flavors of clusters that are lost or leave.

    Kueue matches them against the tolerations of the pod, where none with a key tolerates all (v0.19.2
    pkg/scheduler/flavorassigner/flavorassigner.go, `FindMatchingUntoleratedTaint`): the job would be admitted
    to such a cluster again and again, and an update that waits until it has left would never end. What a job
    had before stays, so that Kueue can stop it. Members write no runtimes.
    """
    clusters = {LOST_TAINT["key"], LEAVING_TAINT["key"]}
    closed = (
        "each.?effect.orValue('') in ['', 'NoSchedule']"
        f" && (each.?key.orValue('') == '' || each.key.startsWith('{CLUSTER_LABEL}-'))"
    )
    tolerations = "spec.?tolerations.orValue([])"
    before = f"variables.before.exists(group, group.exists(old, each in old.?{tolerations}))"
    allowed = f"!({closed}) || {before}"
    return (
        f"variables.described.all(group, group.all(one, one.?{tolerations}.all(each, {allowed})))",
        "spec.tolerations of its pods: such a job would be sent to clusters that are lost or leave. Name the "
        f"key of each toleration, and none of {', '.join(sorted(clusters))}",
    )


def _deletions(member: str) -> Iterator[Policy]:
    """A job is deleted with its pods, which would run outside of every quota; a pod ends before it goes."""
    jobs = [
        rule("batch", "jobs", operations=("DELETE",)),
        rule("jobset.x-k8s.io", "jobsets", operations=("DELETE",)),
        rule("trainer.kubeflow.org", "trainjobs", operations=("DELETE",)),
    ]
    orphaned = (
        "request.?options.?propagationPolicy.orValue('') == 'Orphan'"
        " || request.?options.?orphanDependents.orValue(false)"
    )
    message = "its pods would run outside of the quota: delete it without --cascade=orphan"
    yield Policy(ORPHANS, jobs, [(f"!({orphaned})", message)], only_from=member)
    runs = (
        "oldObject.?spec.?nodeName.orValue('') != ''"
        " && !(oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed'])"
    )
    forced = "request.?options.?gracePeriodSeconds.orValue(1) == 0"
    evicted = "object.?deleteOptions.?gracePeriodSeconds.orValue(1) == 0"
    yield Policy(
        FORCED,
        [rule("", "pods", operations=("DELETE",)), rule("", "pods/eviction")],
        [
            (
                f"request.operation == 'DELETE' ? !({forced} && {runs}) : !({evicted})",
                "its GPUs would be given to the next pod while its containers run: delete it with --now "
                "instead of --force; where its node is lost, ask an administrator",
            )
        ],
        only_from=member,
    )


def _classes() -> Policy:
    """A job changes its priority class only to one that is known.

    With an unknown one, Kueue fails before it does anything else with the job (kubernetes-sigs/kueue v0.19.2
    pkg/controller/jobframework/reconciler.go, `ensureOneWorkload`): no preemption, no deactivation and no
    time limit stops it any more, and its quota never comes back. A new job is never started instead.

    A policy cannot see which classes exist. Those of administrators are known by a right of the namespace's
    account, which has no wildcards: an administrator's own rights would pass every typing error.
    """
    kinds = [
        rule(group, resource, operations=("UPDATE",))
        for group, resource in (
            ("", "pods"),
            ("batch", "jobs"),
            ("jobset.x-k8s.io", "jobsets"),
            ("trainer.kubeflow.org", "trainjobs"),
        )
    ]
    named = f"metadata.?labels[?'{PRIORITY_LABEL}'].orValue('')"
    known = [one.name for one in PRIORITIES]
    of_teams = ", ".join(one.name for one in PRIORITIES if not one.internal)
    refusal = (
        f"object.{named} in {json.dumps(['', *known])} || object.{named} == oldObject.{named}"
        f" || authorizer.serviceAccount(request.namespace, 'default').group('{KUEUE.rstrip('/')}')"
        f".resource('workloadpriorityclasses').name(object.{named}).check('use').allowed()",
        f"Kueue could not stop a job with an unknown class: name one of {of_teams} in label {PRIORITY_LABEL},"
        " create the job again, or bind a role that may `use` the class to group system:serviceaccounts",
    )
    return Policy(CLASSES, kinds, [refusal])
