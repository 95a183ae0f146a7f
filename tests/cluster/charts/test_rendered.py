"""Charts with our values, before the API server: all objects where the source is here, else what pods get."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.accelerators import gpu_charts
from components.kubernetes.charts import charts
from components.kubernetes.gpu_sharing import SharingArgs
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.stack_objects import rendered
from tests.components.charts.documented_values import FOLDER, handed_on, of_a_pod, of_source, unknown
from tests.components.charts.installed import installed, keys, misspelt

RENDERED = sorted(name for name in binaries.FILES if name in charts())
# Its values of pods lie in sub-charts and in objects of its operator.
_NESTED = {"kube-prometheus-stack"}
NOTED = sorted({path.stem for path in FOLDER.glob("*.toml")} - _NESTED)
# No module of the pinned version can be had. The two charts differ in an optional host network and in the
# subchart, which is off (NVIDIA/k8s-device-plugin, deployments/helm, v0.19.3 and v0.20.0, read 2026-11-22).
IN_PLACE_OF = {("nvidia-device-plugin", "0.20.0"): "0.19.3"}


@pytest.fixture(params=RENDERED)
def chart(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not binaries.kept(name):
        pytest.skip(f"the chart {name} is not here: `make binaries` fetches it, and says why it cannot")
    return name


@pytest.fixture
def namespace(chart: str, api: KubernetesApi) -> Iterator[None]:
    """That of the chart, which the stack's program makes."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": charts()[chart].namespace}}
    if api.find("v1", "Namespace", charts()[chart].namespace):
        yield
        return
    api.create(body)
    yield
    api.delete("v1", "Namespace", charts()[chart].namespace)


def source(chart: str) -> Path:
    (folder,) = binaries.files_of(chart)
    return folder


def refusals(api: KubernetesApi, objects: list[Object]) -> list[str]:
    """Errors of the API server about objects, unknown fields included."""
    said = []
    for body in objects:
        try:
            api.apply(body, dry_run=True)
        except ApiError as error:
            said.append(f"{body['kind']} {body['metadata']['name']}: {error}")
    return said


def test_the_chart_is_of_the_version_that_is_pinned(chart: str) -> None:
    pinned = charts()[chart].version
    expected = IN_PLACE_OF.get((chart, pinned), pinned)
    assert binaries.FILES[chart].version == f"v{expected}"
    assert of_source(source(chart)).version == expected


def test_the_chart_knows_every_value_it_is_given(chart: str) -> None:
    for release in installed()[chart]:
        assert list(unknown(release["values"], of_source(source(chart)).values)) == []


def test_a_plugin_that_shares_gpus_mounts_them_and_sees_them_itself_without_privileges() -> None:
    name = "nvidia-device-plugin"
    if not binaries.kept(name):
        pytest.skip(f"the chart {name} is not here: `make binaries` fetches it, and says why it cannot")
    values = gpu_charts({"gpu_pools": ["a100", "l4"], "sharing": [{"kind": "time_sharing", "clients": 4}]})[
        name
    ]
    objects = rendered(name, values)
    (configs,) = (body for body in objects if body["kind"] == "ConfigMap")
    assert set(configs["data"]) == {"whole", "turns-4"}
    turns = json.loads(configs["data"]["turns-4"])
    assert turns["sharing"]["timeSlicing"]["resources"][0]["replicas"] == 4
    assert turns["flags"]["plugin"] == {"deviceListStrategy": "volume-mounts"}
    # Nodes with whole GPUs are as they were: their runtime takes no mounts.
    assert "plugin" not in json.loads(configs["data"]["whole"])["flags"]
    pods = [body["spec"]["template"]["spec"] for body in objects if body["kind"] == "DaemonSet"]
    plugin = next(pod for pod in pods if "mps" not in pod["containers"][0]["name"])
    (container,) = (one for one in plugin["containers"] if one["name"] == "nvidia-device-plugin-ctr")
    # NVIDIA's runtime takes this capability for privileged, and lets the plugin name its GPUs.
    assert container["securityContext"] == {"capabilities": {"add": ["SYS_ADMIN"]}}
    # They would override the configurations.
    assert not {"DEVICE_LIST_STRATEGY", "NVIDIA_MIG_MONITOR_DEVICES"} & {
        one["name"] for one in container["env"]
    }
    assert {"name": "DEFAULT_CONFIG", "value": "whole"} in plugin["initContainers"][0]["env"]


def test_a_plugin_with_parts_opens_them_by_the_configuration_of_each_node() -> None:
    name = "nvidia-device-plugin"
    if not binaries.kept(name):
        pytest.skip(f"the chart {name} is not here: `make binaries` fetches it, and says why it cannot")
    cut: SharingArgs = {"kind": "mig", "partition": "1g.5gb"}
    objects = rendered(name, gpu_charts({"gpu_pools": ["a100", "l4"], "sharing": [cut]})[name])
    (configs,) = (body for body in objects if body["kind"] == "ConfigMap")
    flags = json.loads(configs["data"]["partitions"])["flags"]
    assert flags == {"migStrategy": "single", "plugin": {"deviceListStrategy": "volume-mounts"}}
    pods = [body["spec"]["template"]["spec"] for body in objects if body["kind"] == "DaemonSet"]
    plugin = next(pod for pod in pods if "mps" not in pod["containers"][0]["name"])
    (container,) = (one for one in plugin["containers"] if one["name"] == "nvidia-device-plugin-ctr")
    # SYS_ADMIN alone does not open parts (NVIDIA/nvidia-container-toolkit issue 1740).
    assert container["securityContext"] == {"privileged": True}
    assert not {"DEVICE_LIST_STRATEGY", "MIG_STRATEGY"} & {one["name"] for one in container["env"]}


def test_every_misspelt_value_is_seen(chart: str) -> None:
    documented = of_source(source(chart)).values
    for release in installed()[chart]:
        for path in keys(release["values"]):
            if not handed_on(path, documented):
                (said,) = unknown(misspelt(release["values"], path), documented)
                assert f"{path[-1]}X:" in said


@pytest.mark.usefixtures("namespace")
def test_the_api_server_takes_every_object(chart: str, api: KubernetesApi) -> None:
    objects = [body for release in installed()[chart] for body in rendered(chart, release["values"])]
    assert {"Deployment", "DaemonSet", "CustomResourceDefinition"} & {body["kind"] for body in objects}
    different = {json.dumps(body, sort_keys=True): body for body in objects}
    assert refusals(api, list(different.values())) == []


def test_the_api_server_refuses_every_misspelt_value_of_a_pod(chart: str, api: KubernetesApi) -> None:
    release, *_ = installed()[chart]
    for path in keys(release["values"]):
        if of_a_pod(path):
            objects = rendered(chart, misspelt(release["values"], path))
            pods = [body for body in objects if body["kind"] in ("Deployment", "DaemonSet")]
            assert refusals(api, pods), path


@pytest.mark.parametrize("chart", NOTED)
def test_what_other_charts_put_into_a_pod_is_valid_in_a_pod(chart: str, api: KubernetesApi) -> None:
    release, *_ = installed()[chart]
    assert refusals(api, [pod(release["values"])]) == []
    for path in keys(release["values"]):
        if of_a_pod(path):
            assert refusals(api, [pod(misspelt(release["values"], path))]), path


def pod(values: Mapping[str, Any]) -> Object:
    """A pod with what a chart's values say of pods."""
    container: Object = {"name": "main", "image": "example.com/none:1"}
    for value, key in (("resources", "resources"), ("extraEnv", "env")):
        if value in values:
            container[key] = values[value]
    scheduling = {key: values[key] for key in ("affinity", "tolerations") if key in values}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "test-charts", "namespace": "default"},
        "spec": {"containers": [container], **scheduling},
    }
