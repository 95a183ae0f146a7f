"""Arguments of a program in any language, as those of a component."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.output import Unknown

from infra.errors import Problem, UserError, did_you_mean
from plugin.shapes import Field, Kind, Record, ValueType, camel

_NAMES = {
    Kind.STRING: "a string",
    Kind.INTEGER: "a whole number",
    Kind.NUMBER: "a number",
    Kind.BOOLEAN: "true or false",
    Kind.LIST: "a list",
    Kind.MAP: "a map with text as keys",
    Kind.RECORD: "an object",
}


def convert(record: Record, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their names in Python. Raises UserError with all problems."""
    problems: list[Problem] = []
    found = _record(record, given, "", problems)
    if problems:
        raise UserError(problems)
    return found


def translated(problem: Problem) -> tuple[str, str]:
    """Path and message of a problem with the names of other languages."""
    path = ".".join(camel(part) for part in problem.path.split("."))
    against = ".".join(camel(part) for part in problem.against.split("."))
    text = str(problem).removeprefix(f"{problem.path}: ").replace(problem.against, against)
    return path, text


def _record(record: Record, given: Mapping[str, Any], path: str, problems: list[Problem]) -> dict[str, Any]:
    known = record.public()
    for name in given.keys() - known.keys():
        fix = did_you_mean(name, known, f"Remove it. Known are {', '.join(sorted(known))}.")
        problems.append(Problem(f"{path}{name}", None, "no such argument", fix, code="argument-unknown"))
    return {
        field.name: _value(field.shape, given[name], f"{path}{name}", problems)
        for name, field in known.items()
        if _is_given(field, given, path, problems)
    }


def _is_given(field: Field, given: Mapping[str, Any], path: str, problems: list[Problem]) -> bool:
    if given.get(field.public) is not None:
        return True
    if field.required:
        fix = f"Set it: {field.text.splitlines()[0]}" if field.text else "Set it."
        problem = Problem(f"{path}{field.public}", None, "is required", fix, code="argument-missing")
        problems.append(problem)
    return False


def _value(shape: ValueType, given: Any, path: str, problems: list[Problem]) -> Any:
    if isinstance(given, pulumi.Output | Unknown):
        return _output(shape, given, path, problems)
    wrong = _wrong(shape, given)
    if wrong:
        rule, fix = wrong
        problems.append(Problem(path, given, rule, fix, code="argument-type"))
        return None
    match shape.kind:
        case Kind.INTEGER:
            return int(given)
        case Kind.NUMBER:
            return float(given)
        case Kind.LIST:
            assert shape.inner
            return [_value(shape.inner, one, f"{path}[{at}]", problems) for at, one in enumerate(given)]
        case Kind.MAP:
            assert shape.inner
            return {key: _value(shape.inner, one, f"{path}.{key}", problems) for key, one in given.items()}
        case Kind.RECORD:
            assert shape.record
            before = len(problems)
            found = _record(shape.record, given, f"{path}.", problems)
            return shape.made(**found) if shape.made and len(problems) == before else found
    return shape.made(given) if shape.made else given


def _output(shape: ValueType, given: Any, path: str, problems: list[Problem]) -> Any:
    if not shape.late and shape.kind is not Kind.ANY:
        rule = "must be a plain value: an output, which a preview may not know, or a secret was given"
        fix = "Give the value itself, such as a constant or a plain setting of the stack."
        problems.append(Problem(path, None, rule, fix, code="argument-not-plain"))
        return None
    output = pulumi.Output.from_input(given)
    # Numbers arrive as floating-point numbers.
    return output.apply(int) if shape.kind is Kind.INTEGER else output


def _wrong(shape: ValueType, given: Any) -> tuple[str, str] | None:
    """Rule and fix of a value of another type, None for one of this type."""
    fits: bool
    match shape.kind:
        case Kind.STRING:
            if isinstance(given, str) and shape.choices and given not in shape.choices:
                near = did_you_mean(given, shape.choices, f"Use one of {', '.join(shape.choices)}.")
                return "is no known choice", near
            fits = isinstance(given, str)
        case Kind.BOOLEAN:
            fits = isinstance(given, bool)
        case Kind.INTEGER:
            fits = _is_number(given) and float(given).is_integer()
        case Kind.NUMBER:
            fits = _is_number(given)
        case Kind.LIST:
            fits = isinstance(given, list)
        case Kind.MAP | Kind.RECORD:
            fits = isinstance(given, dict)
        case Kind.ANY:
            fits = True
    return None if fits else (f"must be {_NAMES[shape.kind]}", f"Give {_NAMES[shape.kind]}.")


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)
