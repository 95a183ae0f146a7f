"""Read exports of `pulumi stack export`: the resources of a stack after its last operation."""

from pathlib import Path

from policies.resource import Resource
from policies.sources.convert import Converter, check_not_empty
from policies.sources.files import FileProblems, file_error, parsed, read_file

VERSIONS = (3, 4)
"""Versions of the schema: 3, and 4 for stacks with newer features (apitype/core.go of CLI 3.259.0)."""
_FIX = "Write it with: pulumi stack export --stack NAME --file FILE"


def read(path: Path, *, allow_empty: bool = False) -> list[Resource]:
    """The resources of an export. Raises UserError for any other file, and for one without resources."""
    file = str(path)
    found = parsed(read_file(path, _FIX), file, _FIX)
    if isinstance(found, dict) and ("steps" in found or "changeSummary" in found):
        rule = "is a preview, not the export of a stack"
        raise file_error(file, rule, "Pass it as --preview.", "state-is-a-preview")
    if not isinstance(found, dict) or "deployment" not in found or "version" not in found:
        raise file_error(file, "is no output of `pulumi stack export`", _FIX, "state-unknown-format")
    problems = FileProblems(file)
    if found["version"] not in VERSIONS or isinstance(found["version"], bool):
        fix = "Export it again with Pulumi 3.249 or later; a newer format needs a newer trainstack."
        rule = f"must be {' or '.join(map(str, VERSIONS))}"
        problems.add("version", found["version"], rule, fix, "state-unsupported-version")
        problems.end()
    deployment = problems.wants(found, "deployment", dict, "", _FIX)
    converter = Converter(problems, "state")
    for index, row in enumerate(problems.wants(deployment, "resources", list, "deployment", _FIX)):
        converter.add(f"deployment.resources[{index}]", row)
    resources = converter.resources()
    check_not_empty(resources, file, allow_empty)
    return resources
