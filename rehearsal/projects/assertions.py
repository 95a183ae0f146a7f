"""Assertions of a project about its rehearsal: the file `rehearsal.yaml`, read strictly, and its verdicts.

resources:                       # after `up`, or as a preview plans it
  - type: aws:s3/bucket:Bucket   # type, name, or both; with * and ?
    name: logs
    count: 1                     # exactly; without it: at least one
    properties: {forceDestroy: false, tags.owner: data}
outputs:
  url: {matches: "^https://"}    # equals, matches, or {} for: is there
never:                           # changes that must not happen
  - {operation: replace, type: "aws:rds/*"}
"""

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from infra.errors import Problem, UserError, did_you_mean
from rehearsal.core.properties import at
from rehearsal.projects.observed import Observed, SeenResource
from rehearsal.projects.stack_file import load

FILE = "rehearsal.yaml"
_CLOSED = ConfigDict(frozen=True, extra="forbid", strict=True)
_SECRET = "[secret]"  # noqa: S105 - what the engine writes in place of one
_LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Mark of a value that a preview does not know (pulumi sdk/go/common/resource/plugin/rpc.go v3.259.0)."""
_MISSING = object()
_FORMS = "See docs/how-to/rehearse.md for the form."


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


class _Selecting(BaseModel):
    model_config = _CLOSED

    type: Annotated[str, Field(min_length=1)] | None = None
    name: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _selects(self) -> Self:
        if self.type is None and self.name is None:
            raise ValueError("needs a type, a name, or both")
        return self

    def selects(self, type: str, name: str) -> bool:
        """Return whether a resource is one of those."""
        return fnmatch.fnmatchcase(type, self.type or "*") and fnmatch.fnmatchcase(name, self.name or "*")

    def __str__(self) -> str:
        return " ".join(one for one in (self.type, self.name) if one)


class ResourceAssertion(_Selecting):
    """Resources that exist, their number, and properties that each of them has."""

    count: Annotated[int, Field(ge=0)] | None = None
    """None: at least one."""
    properties: Mapping[str, Any] = Field(default_factory=dict)
    """Path such as `tags.owner` or `rules[0].port` -> value; null: absent."""


class OutputAssertion(BaseModel):
    """An output of the stack that exists, with a value or a form."""

    model_config = _CLOSED

    equals: Any = None
    matches: Annotated[str, AfterValidator(_pattern)] | None = None


class NeverAssertion(_Selecting):
    """A change that must not happen, in `up` and in the unchanged `up` after it."""

    operation: Literal["create", "update", "replace", "delete"]


class Assertions(BaseModel):
    """The contents of a file."""

    model_config = _CLOSED

    resources: list[ResourceAssertion] = Field(default_factory=list)
    outputs: Mapping[str, OutputAssertion] = Field(default_factory=dict)
    never: list[NeverAssertion] = Field(default_factory=list)


@dataclass(frozen=True)
class AssertionVerdict:
    """The result of one assertion; `found` is the reason where it does not hold."""

    path: str
    """Its place in the file, such as `resources[0]`."""
    name: str
    found: str = ""

    @property
    def passed(self) -> bool:
        """Return whether it holds."""
        return not self.found


def read(path: Path) -> Assertions:
    """The assertions of a file. Raises UserError with every problem of it."""
    content = load(path)
    try:
        return Assertions.model_validate(content)
    except ValidationError as error:
        raise UserError([_problem(path, dict(one)) for one in error.errors()]) from None


def of_project(folder: Path) -> Assertions | None:
    """The assertions of a project; None where it has no such file."""
    path = folder / FILE
    return read(path) if path.is_file() else None


def judge(asserted: Assertions, observed: Observed) -> list[AssertionVerdict]:
    """The verdicts, in the order of the file."""
    return [
        *(_resources(f"resources[{index}]", one, observed) for index, one in enumerate(asserted.resources)),
        *(_output(name, one, observed) for name, one in asserted.outputs.items()),
        *(_never(f"never[{index}]", one, observed) for index, one in enumerate(asserted.never)),
    ]


def _resources(path: str, asserted: ResourceAssertion, observed: Observed) -> AssertionVerdict:
    found = [one for one in observed.resources if asserted.selects(one.type, one.name)]
    wanted = "at least one" if asserted.count is None else str(asserted.count)
    name = f"resources {asserted}: {wanted}"
    if asserted.properties:
        name += f", with {', '.join(asserted.properties)}"
    if not found if asserted.count is None else len(found) != asserted.count:
        others = "" if found else _nearest(asserted, observed.resources)
        return AssertionVerdict(path, name, f"{len(found)} exist, {wanted} expected{others}")
    wrong = [line for one in found for line in _differences(asserted.properties, one)]
    return AssertionVerdict(path, name, "; ".join(wrong))


def _nearest(asserted: _Selecting, resources: Sequence[SeenResource]) -> str:
    names = {one.name for one in resources} if asserted.name else {one.type for one in resources}
    near = did_you_mean(asserted.name or asserted.type, names, "")
    return f". {near}" if near else ""


def _differences(expected: Mapping[str, Any], resource: SeenResource) -> Iterator[str]:
    for path, wanted in expected.items():
        value = _MISSING if (found := at(dict(resource.values), path)) is None else found
        why = _differs(wanted, value)
        if why:
            yield f"{resource.name}: {path} {why}"


def _differs(wanted: Any, value: Any) -> str:
    if wanted is None:
        return "" if value is _MISSING else f"is {_shown(value)}, none expected"
    if value is _MISSING:
        return f"is absent, {_shown(wanted)} expected"
    if value == _SECRET:
        return "is a secret, which is not compared"
    if isinstance(value, str) and _LATER in value:
        return "is not known before the deployment"
    same = value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
    return "" if same else f"is {_shown(value)}, {_shown(wanted)} expected"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _output(key: str, asserted: OutputAssertion, observed: Observed) -> AssertionVerdict:
    path, form = f"outputs.{key}", asserted.matches
    name = f"output {key}" + (f" matches {form}" if form else "")
    if key not in observed.outputs:
        near = did_you_mean(
            key, observed.outputs, f"Outputs: {', '.join(sorted(observed.outputs)) or 'none'}."
        )
        return AssertionVerdict(path, name, f"does not exist. {near}")
    value = observed.outputs[key]
    if asserted.equals is None and form is None:
        return AssertionVerdict(path, name)
    why = _differs(asserted.equals, value) if asserted.equals is not None else ""
    if form is not None and not why:
        unseen = _differs("", value) if value == _SECRET or _LATER in str(value) else ""
        why = unseen or ("" if re.search(form, str(value)) else f"is {_shown(value)}")
    return AssertionVerdict(path, name, why)


def _never(path: str, asserted: NeverAssertion, observed: Observed) -> AssertionVerdict:
    found = [
        one
        for one in observed.changes
        if one.operation == asserted.operation and asserted.selects(one.type, one.name)
    ]
    return AssertionVerdict(path, f"never {asserted.operation} {asserted}", "; ".join(map(str, found)))


def _problem(path: Path, fault: dict[str, Any]) -> Problem:
    place = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in fault["loc"]).lstrip(".")
    value = None if fault["type"] == "missing" else fault.get("input")
    rule, fix = str(fault["msg"]).removeprefix("Value error, ").lower(), _FORMS
    if fault["type"] == "extra_forbidden":
        value, rule = fault["loc"][-1], "is no key of this form"
        fix = did_you_mean(value, _keys(fault["loc"]), _FORMS)
    return Problem(f"{path}: {place or 'the file'}", value, rule, fix, code="rehearsal-assertion-invalid")


def _keys(place: tuple[int | str, ...]) -> Sequence[str]:
    """The keys that a form has at the place of an unknown one."""
    forms: Mapping[str, type[BaseModel]] = {
        "resources": ResourceAssertion, "outputs": OutputAssertion, "never": NeverAssertion,
    }  # fmt: skip
    form = forms.get(str(place[0]), Assertions) if len(place) > 1 else Assertions
    return list(form.model_fields)
