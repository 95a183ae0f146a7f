"""Versions of documents of Systems Manager.

Source: hashicorp/terraform-provider-aws internal/service/ssm/document.go (resourceDocumentUpdate: what is not
about permissions or tags makes a version, which becomes the default).
"""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record

_VERSIONS = ("latestVersion", "defaultVersion", "documentVersion")
_BESIDES = ("permissions", "tags")


def _next_version(_: Site, document: Record, inputs: Properties) -> Properties:
    was, now = ({k: v for k, v in x.items() if k not in _BESIDES} for x in (document.inputs, inputs))
    if was == now:
        return {}
    newest = str(int(document.outputs.get("latestVersion", 1)) + 1)
    return dict.fromkeys(_VERSIONS, newest)


HOOKS: Mapping[str, Hooks[Site]] = {
    "ssm/document:Document": Hooks(updated=_next_version, volatile=_VERSIONS),
}
