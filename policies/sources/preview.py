"""What `pulumi preview --json` writes: the resources that a stack would have after the `up`.

There are two forms, both of pkg/backend/display (json.go, display.go) in the CLI 3.259.0: one document at the
end (`PreviewDigest`), or with PULUMI_ENABLE_STREAMING_JSON_PREVIEW a line for each engine event, as in a log.
Events tell no dependencies: from which resource an unknown value will come, only the document says.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policies.resource import Resource
from policies.sources.convert import Converter, refuse_empty
from policies.sources.document import Complaints, content, lines, parsed, refuse

_FIX = "Write it with: pulumi preview --json --show-sames > FILE"
# Steps whose resource is gone afterwards. Source: pkg/resource/deploy/step.go of CLI 3.259.0.
_GONE = ("delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace")


def read(path: Path, *, allow_empty: bool = False) -> list[Resource]:
    """The planned resources of a preview that succeeded and that tells of all resources.

    Raises UserError for every other file.
    """
    file = str(path)
    data = content(path, _FIX)
    first = data.lstrip()[:200]
    complaints = Complaints(file)
    streamed = first.startswith(b'{"sequence"') or b'"sequence":' in first.split(b"\n", 1)[0]
    steps = _of_events(data, file, complaints) if streamed else _of_digest(data, file, complaints)
    converter = Converter(complaints, "planned")
    for where, row in steps.values():
        converter.add(where, row)
    resources = converter.resources()
    refuse_empty(resources, file, allow_empty)
    return resources


_Steps = dict[str, tuple[str, Any]]


def _of_digest(data: bytes, file: str, complaints: Complaints) -> _Steps:
    found = parsed(data, file, _FIX)
    if isinstance(found, dict) and "deployment" in found:
        raise refuse(file, "is the export of a stack, not a preview", "Give it as --state.")
    if not isinstance(found, dict) or not {"steps", "changeSummary", "diagnostics"} & found.keys():
        raise refuse(file, "is not what `pulumi preview --json` writes", _FIX)
    diagnostics = complaints.wants(found, "diagnostics", list, "", _FIX)
    errors = [one for one in diagnostics if _text(one, "severity") == "error"]
    summary = complaints.wants(found, "changeSummary", dict, "", _FIX)
    if errors or "changeSummary" not in found:
        said = _text(errors[0], "message").strip() if errors else "it has no summary"
        raise refuse(file, f"the preview did not succeed: {said}", "Mend that first, and preview again.")
    rows: _Steps = {}
    same = 0
    for index, step in enumerate(complaints.wants(found, "steps", list, "", _FIX)):
        where = f"steps[{index}]"
        if not isinstance(step, dict):
            complaints.add(where, step, "must be an object", _FIX)
            continue
        same += step.get("op") == "same"
        if step.get("op") not in _GONE:
            rows[str(step.get("urn"))] = (f"{where}.newState", _new_state(step))
    _refuse_partial(file, summary, same)
    return rows


def _new_state(step: Mapping[str, Any]) -> Any:
    """The state after a step, with what stays of the one before.

    The engine tells of a step before it is made, and takes the id over when it makes it, and the outputs too
    where nothing changes (pkg/resource/deploy/step.go, Apply of SameStep and UpdateStep).
    """
    new, old = step.get("newState"), step.get("oldState")
    same = ("id", "outputs", "initErrors", "modified")
    stays = {"same": same, "update": ("id",)}.get(str(step.get("op")), ())
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    return {**{key: old[key] for key in stays if key in old}, **new}


def _of_events(data: bytes, file: str, complaints: Complaints) -> _Steps:
    rows: _Steps = {}
    summary: Mapping[str, Any] | None = None
    for number, event in lines(data.splitlines(), file, _FIX):
        if not isinstance(event, dict):
            complaints.add(f"line {number}", event, "must be an event", _FIX)
            continue
        summary = complaints.wants(event, "summaryEvent", dict, f"line {number}", _FIX) or summary
        for key in ("resourcePreEvent", "resOutputsEvent"):
            told = complaints.wants(event, key, dict, f"line {number}", _FIX)
            step = complaints.wants(told, "metadata", dict, f"line {number}.{key}", _FIX)
            if step and step.get("op") not in _GONE and step.get("new") is not None:
                rows[str(step.get("urn"))] = (f"line {number}.{key}.metadata.new", step["new"])
    complaints.end()
    if summary is None or summary.get("result") not in (None, "succeeded"):
        rule = "the preview did not succeed, or its events were cut off"
        raise refuse(file, rule, "Mend what its diagnostics say, and preview again.")
    if summary.get("isPreview") is False:
        rule = "these are the events of an operation that changed the stack"
        raise refuse(file, rule, "Export the state instead, and give it as --state.")
    return rows


def _refuse_partial(file: str, summary: Mapping[str, Any], shown: int) -> None:
    """A preview leaves out what stays the same: judged without it, the stack would not be the stack."""
    same = summary.get("same", 0)
    if isinstance(same, int) and same > shown:
        rule = f"leaves out {same - shown} resources that stay as they are"
        raise refuse(file, rule, _FIX)


def _text(holder: Any, key: str) -> str:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""
