"""The pools that Kueue can assign to a job."""

from collections.abc import Iterator, Mapping, Sequence

from trainstack.queues.state import ClusterQueue, Flavor, Job, PodSet

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def candidates(job: Job, queue: ClusterQueue, flavors: Mapping[str, Flavor]) -> Iterator[str]:
    """The flavors of a queue whose nodes all pods of a job accept, in the order in which it tries them.

    Of a pod's affinity only its node selector is evaluated. Source: kubernetes-sigs/kueue v0.19.2
    pkg/scheduler/flavorassigner/flavorassigner.go, `checkFlavorForPodSets`.
    """
    for name in queue.flavors:
        flavor = flavors.get(name)
        if flavor is None or all(_accepts(one, flavor) for one in job.pod_sets):
            yield name


def _accepts(pods: PodSet, flavor: Flavor) -> bool:
    known = {key: value for key, value in pods.selector.items() if key in flavor.labels}
    if any(flavor.labels[key] != value for key, value in known.items()):
        return False
    tolerated = [*pods.tolerations, *flavor.tolerations]
    return all(_tolerated(taint, tolerated) for taint in flavor.taints if taint.get("effect") in _KEEPS_AWAY)


def _tolerated(taint: Mapping[str, str], tolerations: Sequence[Mapping[str, str]]) -> bool:
    """Source: kubernetes v1.36.2 staging/src/k8s.io/api/core/v1/toleration.go, `ToleratesTaint`."""
    return any(
        one.get("effect", "") in ("", taint["effect"])
        and one.get("key", "") in ("", taint["key"])
        and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
        for one in tolerations
    )
