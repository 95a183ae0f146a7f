"""Versions of add-ons and node images by version of Kubernetes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from infra.catalog.fact import Fact, Name
from infra.errors import Problem

ADDON_VERSION: Final = r"^v\d+\.\d+\.\d+-eksbuild\.\d+$"
"""The form of the version of an EKS add-on."""
NODE_IMAGE: Final = r"^1\.\d+\.\d+-\d{8}$"
"""The form of a release of EKS's node images: Kubernetes version and day, the same for all variants."""

Minor = Annotated[str, Field(pattern=r"^1\.\d+$")]


class AddonRelease(Fact):
    """A version of an add-on that works with a version of Kubernetes."""

    addon: Name
    kubernetes: Minor
    version: Annotated[str, Field(pattern=ADDON_VERSION)]


class NodeImage(Fact):
    """A release of EKS's node images for a version of Kubernetes."""

    kubernetes: Minor
    release: Annotated[str, Field(pattern=NODE_IMAGE)]


@dataclass(frozen=True)
class Releases:
    """Add-ons by name and Kubernetes version, node images by Kubernetes version."""

    addons: Mapping[tuple[str, str], AddonRelease]
    node_images: Mapping[str, NodeImage]

    def addon(self, name: str, kubernetes: str, wanted: Mapping[str, str]) -> str | None:
        """The pinned version, else that of the catalog; None where EKS chooses."""
        row = self.addons.get((name, kubernetes))
        return wanted.get(name) or (row.version if row else None)

    def node_image(self, kubernetes: str, wanted: str | None) -> str | None:
        """The pinned release, else that of the catalog; None where EKS chooses."""
        row = self.node_images.get(kubernetes)
        return wanted or (row.release if row else None)


def node_image_problems(path: str, release: str | None, version_path: str, version: str) -> Iterator[Problem]:
    """A pinned node image is for the Kubernetes version of the control plane."""
    if release is not None and re.match(NODE_IMAGE, release) and not release.startswith(f"{version}."):
        fix = "Leave it out, or set the release that `trainstack versions` lists for this version."
        rule = f"the node image is not for Kubernetes {version}"
        yield Problem(path, release, rule, fix, against=version_path, code="node-image-of-other-version")
