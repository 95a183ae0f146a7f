"""Whether the same program brings the same software tomorrow."""

import re
from collections.abc import Iterator

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource

_RELEASE, _ADDON = "kubernetes:helm.sh/v3:Release", "aws:eks/addon:Addon"
# Helm takes anything shorter, such as 1.2, for a range.
_EXACT = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")
_LOCAL = ("/", "./", "../", "~")


@CATALOGUE.rule(
    About(
        "MLS-K8S-11",
        "medium",
        (_RELEASE, _ADDON),
        "Without a version, the newest of that day is installed: two clusters of one program differ, and"
        " nobody reviewed what is new.",
        "Set version of the chart, or addonVersion of the add-on, to one version.",
        (
            "pulumi-kubernetes provider/pkg/provider/helm_release.go: without a version, the chart's own",
            "EKS API Reference, CreateAddon, addonVersion",
        ),
    )
)
def charts_and_addons_have_a_version(brought: Resource) -> Iterator[Violation]:
    """A Helm release or an add-on of EKS names one version."""
    if brought.asked is None:
        raise NotApplicableError("the source does not say what was asked for")
    # States hold the version that was taken, also where nobody asked for one.
    if brought.kind == _ADDON:
        if not brought.asked.get("addonVersion"):
            yield Violation("EKS chooses its version", "addonVersion")
        return
    chart = str(brought.asked.get("chart") or "")
    if chart.startswith(_LOCAL) or chart.endswith(".tgz") or "@sha256:" in chart:
        raise NotApplicableError("its chart is a file, or named by its digest")
    version = brought.asked.get("version")
    if not version:
        yield Violation("the newest version of its chart is taken", "version")
    elif not _EXACT.fullmatch(str(version)):
        yield Violation(f"{version} is a range of versions", "version")
