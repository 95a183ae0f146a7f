"""Versions of Helm charts and EKS add-ons."""

import re
from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource

_RELEASE, _ADDON = "kubernetes:helm.sh/v3:Release", "aws:eks/addon:Addon"
# Helm treats shorter versions, such as 1.2, as a range.
_EXACT = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")
_LOCAL = ("/", "./", "../", "~")


@CATALOG.rule(
    "MLS-K8S-11",
    "medium",
    (_RELEASE, _ADDON),
    "Without a version, the newest one is installed: two clusters of one program differ, and changes are"
    " not reviewed.",
    "Set version of the chart, or addonVersion of the add-on, to one version.",
    (
        "pulumi-kubernetes provider/pkg/provider/helm_release.go: without a version, the chart's own",
        "EKS API Reference, CreateAddon, addonVersion",
    ),
)
def charts_and_addons_have_a_version(software: Resource) -> Iterator[Violation]:
    """A Helm release or an add-on of EKS names one version."""
    if software.asked is None:
        raise NotApplicableError("the source has no inputs of the program")
    # States contain the installed version, also if the program sets none.
    if software.kind == _ADDON:
        if not software.asked.get("addonVersion"):
            yield Violation("EKS chooses its version", "addonVersion")
        return
    chart = str(software.asked.get("chart") or "")
    if chart.startswith(_LOCAL) or chart.endswith(".tgz") or "@sha256:" in chart:
        raise NotApplicableError("its chart is a file, or named by its digest")
    version = software.asked.get("version")
    if not version:
        yield Violation("the newest version of its chart is installed", "version")
    elif not _EXACT.fullmatch(str(version)):
        yield Violation(f"{version} is a range of versions", "version")
