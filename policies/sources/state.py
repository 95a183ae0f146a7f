"""What `pulumi stack export` writes: the resources that a stack had after its last operation."""

from pathlib import Path

from policies.resource import Resource
from policies.sources.convert import Converter, refuse_empty
from policies.sources.document import Complaints, content, parsed, refuse

VERSIONS = (3, 4)
"""Of the deployment's schema: 3, and 4 where a stack uses what 3 lacks (apitype/core.go of CLI 3.259.0)."""
_FIX = "Write it with: pulumi stack export --stack NAME --file FILE"


def read(path: Path, *, allow_empty: bool = False) -> list[Resource]:
    """The resources of an export. Raises UserError for a file that is anything else, or that holds none."""
    file = str(path)
    found = parsed(content(path, _FIX), file, _FIX)
    if isinstance(found, dict) and ("steps" in found or "changeSummary" in found):
        raise refuse(file, "is a preview, not the export of a stack", "Give it as --preview.")
    if not isinstance(found, dict) or "deployment" not in found or "version" not in found:
        raise refuse(file, "is not what `pulumi stack export` writes", _FIX)
    complaints = Complaints(file)
    if found["version"] not in VERSIONS or isinstance(found["version"], bool):
        fix = "Export it again with Pulumi 3.249 or later; a newer form needs a newer trainstack."
        complaints.add("version", found["version"], f"must be {' or '.join(map(str, VERSIONS))}", fix)
        complaints.end()
    deployment = complaints.wants(found, "deployment", dict, "", _FIX)
    converter = Converter(complaints, "state")
    for index, row in enumerate(complaints.wants(deployment, "resources", list, "deployment", _FIX)):
        converter.add(f"deployment.resources[{index}]", row)
    resources = converter.resources()
    refuse_empty(resources, file, allow_empty)
    return resources
