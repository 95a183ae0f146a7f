"""The newest version of everything: AWS is asked for its own, chart repositories for theirs."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import requests
from ruamel.yaml import YAML

# Updated one minor version at a time. Source: EKS user guide, "Assign IPs to Pods with the Amazon VPC CNI".
_ONE_MINOR_AT_A_TIME = ("vpc-cni",)
_IMAGES = "/aws/service/eks/optimized-ami"
_RECOMMENDED = "amazon-linux-2023/x86_64/standard/recommended/release_version"
_TIMEOUT_S = 20

Fetch = Callable[[str], bytes]


def order(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare two of the same thing."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def kubernetes(eks: Any) -> str | None:
    """The newest version in standard support, of a boto3 client for EKS."""
    told = eks.describe_cluster_versions(versionStatus="STANDARD_SUPPORT")["clusterVersions"]
    return max((row["clusterVersion"] for row in told), key=order, default=None)


def node_image(ssm: Any, version: str) -> str:
    """The newest release of node images for a Kubernetes version, of a boto3 client for Systems Manager."""
    answer = ssm.get_parameter(Name=f"{_IMAGES}/{version}/{_RECOMMENDED}")
    return str(answer["Parameter"]["Value"])


def addon(eks: Any, name: str, version: str, current: str | None) -> str | None:
    """The newest version of an add-on for a Kubernetes version, one step away from `current`."""
    asked = eks.get_paginator("describe_addon_versions")
    pages = asked.paginate(kubernetesVersion=version, addonName=name)
    rows = [row for page in pages for one in page["addons"] for row in one["addonVersions"]]
    known = [row["addonVersion"] for row in rows]
    if current and name in _ONE_MINOR_AT_A_TIME:
        major, minor = order(current)[:2]
        known = [one for one in known if order(one)[:2] <= (major, minor + 1)]
    return max(known, key=order, default=None)


def chart(name: str, repository: str | None, fetch: Fetch) -> str | None:
    """The newest release of a chart: of a Helm repository, or of an OCI one, whose chart is an address."""
    if repository is None:
        host, _, path = name.removeprefix("oci://").partition("/")
        found: Iterable[str] = json.loads(fetch(f"https://{host}/v2/{path}/tags/list"))["tags"]
    else:
        index: Mapping[str, Any] = YAML(typ="safe").load(fetch(f"{repository}/index.yaml"))
        found = [row["version"] for row in index["entries"].get(name, ())]
    released = [one for one in found if re.fullmatch(r"v?\d+\.\d+\.\d+", one)]
    return max(released, key=order, default=None)


def fetched(url: str) -> bytes:
    """The content of an address. Raises requests.RequestException."""
    answer = requests.get(url, timeout=_TIMEOUT_S)
    answer.raise_for_status()
    return answer.content
