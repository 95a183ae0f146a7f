"""Read previews of `pulumi preview --json`: the resources of a stack after the `up`.

There are two formats, both of pkg/backend/display (json.go, display.go) in the CLI 3.259.0: one document at
the end (`PreviewDigest`), or with PULUMI_ENABLE_STREAMING_JSON_PREVIEW a line per engine event, as in a log.
Events have no dependencies: only the document has the reference of an unknown value.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policies.resource import Resource
from policies.sources.convert import Converter, check_not_empty
from policies.sources.files import FileProblems, file_error, lines, parsed, read_file

_FIX = "Write it with: pulumi preview --json --show-sames > FILE"
_AGAIN = "Run it again until it exits with 0: pulumi preview --json --show-sames > FILE"
_OTHER = "Only programs of Pulumi are judged."
# Documents that are passed by mistake: a key that only they have, their name, and the fix.
_MISTAKEN = (
    ("deployment", "the export of a stack", "Pass it as --state.", "preview-is-a-state"),
    ("resourcePlans", "a plan of `pulumi preview --save-plan`", _FIX, "preview-is-a-plan"),
    ("resource_changes", "a plan of Terraform", _OTHER, "preview-of-terraform"),
    ("planned_values", "a plan of Terraform", _OTHER, "preview-of-terraform"),
)
_SHOWN_KEYS = 5
# Steps that remove their resource. Source: pkg/resource/deploy/step.go of CLI 3.259.0.
_GONE = ("delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace")


def read(path: Path, *, allow_empty: bool = False) -> list[Resource]:
    """The planned resources of a complete preview that succeeded. Raises UserError for any other file."""
    return of_data(read_file(path, _FIX), str(path), allow_empty=allow_empty)


def of_data(data: bytes, file: str, *, before: bool = False, allow_empty: bool = False) -> list[Resource]:
    """The resources in an output of the command, planned or `before` the `up`; `file` names it in errors.

    Raises UserError for an output that is not of a complete preview that succeeded.
    """
    first = data.lstrip()[:200]
    problems = FileProblems(file)
    streamed = first.startswith(b'{"sequence"') or b'"sequence":' in first.split(b"\n", 1)[0]
    made = _of_events if streamed else _of_digest
    steps, settings = made(data, file, problems, before=before)
    converter = Converter(problems, "state" if before else "planned", settings)
    for where, row in steps.values():
        converter.add(where, row)
    resources = converter.resources()
    check_not_empty(resources, file, allow_empty)
    return resources


_Steps = dict[str, tuple[str, Any]]
_Planned = tuple[_Steps, Mapping[str, Any]]
"""Steps by URN, and the configuration of the stack: events have none."""


def _of_digest(data: bytes, file: str, problems: FileProblems, *, before: bool) -> _Planned:
    found = _document(data, file)
    diagnostics = problems.wants(found, "diagnostics", list, "", _FIX)
    errors = [one for one in diagnostics if _text(one, "severity") == "error"]
    if errors:
        rule = f"the preview did not succeed: {_text(errors[0], 'message').strip()}"
        raise file_error(file, rule, f"Fix that first. {_AGAIN}", "preview-failed")
    if "changeSummary" not in found:
        rule = "has no summary of its changes: the preview failed or was aborted, or the file is cut"
        raise file_error(f"{file}: changeSummary", rule, _AGAIN, "preview-failed")
    summary = problems.wants(found, "changeSummary", dict, "", _FIX)
    rows: _Steps = {}
    same = 0
    for index, step in enumerate(problems.wants(found, "steps", list, "", _FIX)):
        where = f"steps[{index}]"
        if not isinstance(step, dict):
            problems.add(where, step, "must be an object", _FIX, "file-value-wrong-type")
            continue
        same += step.get("op") == "same"
        if before and step.get("oldState") is not None:
            rows[str(step.get("urn"))] = (f"{where}.oldState", step["oldState"])
        elif not before and step.get("op") not in _GONE:
            rows[str(step.get("urn"))] = (f"{where}.newState", _new_state(step))
    _refuse_partial(file, summary, same)
    return rows, problems.wants(found, "config", dict, "", _FIX)


def _document(data: bytes, file: str) -> dict[str, Any]:
    """The document. Raises UserError for any other, by its name if it is a known one."""
    found = parsed(data, file, _FIX)
    keys = found.keys() if isinstance(found, dict) else ()
    for key, name, fix, code in _MISTAKEN:
        if key in keys:
            raise file_error(file, f"is {name}, not a preview", fix, code)
    if schema := _text(found, "schema"):
        rule, fix = f"is a document of trainstack, {schema}, not a preview", _FIX
        if schema.startswith("trainstack.snapshot/"):
            fix = "Pass it as --snapshot."
        raise file_error(file, rule, fix, "preview-unknown-format")
    if not {"steps", "changeSummary", "diagnostics"} & set(keys):
        shown = ", ".join(map(str, list(keys)[:_SHOWN_KEYS])) or type(found).__name__
        rule = f"is no output of `pulumi preview --json`: it has {shown}, and no steps"
        raise file_error(file, rule, _FIX, "preview-unknown-format")
    return dict(found)


def _new_state(step: Mapping[str, Any]) -> Any:
    """The state after a step, with the values kept from the state before.

    The engine reports a step before it runs, and copies the id when it runs, and the outputs too
    if nothing changes (pkg/resource/deploy/step.go, Apply of SameStep and UpdateStep).
    """
    new, old = step.get("newState"), step.get("oldState")
    same = ("id", "outputs", "initErrors", "modified")
    kept = {"same": same, "update": ("id",)}.get(str(step.get("op")), ())
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    return {**{key: old[key] for key in kept if key in old}, **new}


def _of_events(data: bytes, file: str, problems: FileProblems, *, before: bool) -> _Planned:
    rows: _Steps = {}
    summary: Mapping[str, Any] | None = None
    for number, event in lines(data.splitlines(), file, _FIX):
        if not isinstance(event, dict):
            problems.add(f"line {number}", event, "must be an event", _FIX, "file-value-wrong-type")
            continue
        summary = problems.wants(event, "summaryEvent", dict, f"line {number}", _FIX) or summary
        for key in ("resourcePreEvent", "resOutputsEvent"):
            body = problems.wants(event, key, dict, f"line {number}", _FIX)
            step = problems.wants(body, "metadata", dict, f"line {number}.{key}", _FIX)
            side = "old" if before else "new"
            if step and step.get(side) is not None and (before or step.get("op") not in _GONE):
                rows[str(step.get("urn"))] = (f"line {number}.{key}.metadata.{side}", step[side])
    problems.end()
    if summary is None or summary.get("result") not in (None, "succeeded"):
        rule = "the preview did not succeed, or its events were cut off"
        raise file_error(file, rule, "Fix what its diagnostics report, and preview again.", "preview-failed")
    if summary.get("isPreview") is False:
        rule = "these are the events of an operation that changed the stack"
        fix = "Export the state instead, and pass it as --state."
        raise file_error(file, rule, fix, "preview-of-an-update")
    return rows, {}


def _refuse_partial(file: str, summary: Mapping[str, Any], shown: int) -> None:
    """Raise UserError if a preview leaves out unchanged resources: the stack would be incomplete."""
    same = summary.get("same", 0)
    if isinstance(same, int) and same > shown:
        rule = f"leaves out {same - shown} resources that stay as they are"
        raise file_error(file, rule, _FIX, "preview-incomplete")


def _text(holder: Any, key: str) -> str:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""
