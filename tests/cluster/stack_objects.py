"""Objects that the shipped stack creates in its cluster, those of its charts included, and their pods."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from components.kubernetes.charts import charts
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.load import load_file
from rehearsal.controlplane import binaries, helm
from rehearsal.controlplane.api import Object
from tests.cluster.manifests import manifests
from tests.components.charts.installed import SLURM, installed
from tests.stacks.composition.composed import composed, deployed, stack_spec

PAIR = ("medium", "aws")


@functools.cache
def kubernetes_version() -> str:
    """That of the stack."""
    layout = stack_spec(PAIR).layout
    assert isinstance(layout, ClusterLayout)
    return f"v{layout.kubernetes_version}.0"


def rendered(chart: str, values: Mapping[str, Any]) -> list[Object]:
    """The objects of a chart whose source is here."""
    found = binaries.ready()
    assert found
    (source,) = binaries.files_of(chart)
    release = helm.Release(chart, charts()[chart].namespace)
    return helm.render(found["helm"], source, release, values, kubernetes_version())


@functools.cache
def of_charts() -> Mapping[str, list[Object]]:
    """The objects of the charts that the shipped stack installs and whose source is here, by the chart."""
    return {
        chart: rendered(chart, releases[0]["values"])
        for chart, releases in installed().items()
        if chart in binaries.FILES and binaries.kept(chart)
    }


@functools.cache
def of_program() -> list[Object]:
    """The objects that the programs of a stack with Kueue and of one with Slurm make themselves."""
    made = manifests(composed(PAIR))
    return [*made, *(one for one in manifests(deployed(load_file(SLURM).spec)) if one not in made)]


def pods(objects: list[Object]) -> Iterator[tuple[Object, Object]]:
    """Every object with pods, and a pod as its controller would make it."""
    for body in objects:
        for template in _templates(body):
            metadata = {key: template.get("metadata", {}).get(key, {}) for key in ("labels", "annotations")}
            where = {"namespace": body["metadata"]["namespace"], "generateName": "pod-"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, **where}}
            claimed = [
                {
                    "name": one["metadata"]["name"],
                    "persistentVolumeClaim": {"claimName": one["metadata"]["name"]},
                }
                for one in body["spec"].get("volumeClaimTemplates", [])
            ]
            volumes = [*template["spec"].get("volumes", []), *claimed]
            yield body, {**pod, "spec": {**template["spec"], "volumes": volumes}}


def _templates(body: Object) -> list[Object]:
    if body["kind"] == "CronJob":
        return [body["spec"]["jobTemplate"]["spec"]["template"]]
    if body["kind"] in ("Deployment", "DaemonSet", "StatefulSet", "Job"):
        return [body["spec"]["template"]]
    return []
