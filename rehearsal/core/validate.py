"""Validation of inputs against the schema of a resource type: all problems, at any depth."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.core.model import UNKNOWN, CheckFailure, Properties
from rehearsal.core.properties import join
from rehearsal.core.schema import Property, ResourceSchema

# Mark of an asset or archive inside plain JSON.
SIGNATURE = "4dabf18193072939515e22adb298388d"
# Beside the mark: the folder in which a relative path of the asset begins (`wire.from_struct`).
FOLDER = "folder"
# Names that the SDK adds to every request; not properties of the cloud.
_PLUMBING = frozenset({"__internal", "__defaults"})
# (form, value, path) -> True if the value fits.
Fits = Callable[[str, Any, str], bool]
_WORDS = {"str": "a string", "bool": "a boolean", "int": "a whole number", "float": "a number"}


def validate(schema: ResourceSchema, inputs: Properties, fits: Fits | None = None) -> list[CheckFailure]:
    """Problems of `inputs`: unknown names (with the nearest valid one), missing and mistyped values.

    `fits` judges whether a scalar at a path has a type; by default a string with a number or boolean fits,
    because most providers convert it.
    """
    owner = schema.token.rpartition(":")[2]
    return list(_Validator(schema, fits or _scalar_fits).object(schema.inputs, inputs, "", owner))


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint such as `did you mean subnetIds?`, or the valid names when none is near."""
    names = sorted(valid)
    folded = {re.sub(r"[^a-z0-9]", "", known.lower()): known for known in names}
    found = difflib.get_close_matches(re.sub(r"[^a-z0-9]", "", name.lower()), folded, n=1, cutoff=0.6)
    if found:
        known = folded[found[0]]
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", known).lower()
        return f"did you mean {known}" + (f" ({snake} in Python)?" if snake != known else "?")
    return "valid names: " + ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


@dataclass(frozen=True)
class _Validator:
    schema: ResourceSchema
    fits: Fits

    def object(
        self, fields: Mapping[str, Property], value: Mapping[str, Any], path: str, owner: str
    ) -> Iterator[CheckFailure]:
        for name, item in value.items():
            here = join(path, name)
            if name in fields:
                yield from self._value(fields[name].type, item, here)
            elif name not in _PLUMBING:
                hint = nearest(name, fields)
                yield CheckFailure(here, f"{owner} has no property {name}; {hint}", unknown=True)
        for name, field in fields.items():
            if field.required and value.get(name) is None:
                yield CheckFailure(join(path, name), f"{owner} needs {name}, which is missing")

    def _value(self, form: Any, value: Any, path: str) -> Iterator[CheckFailure]:
        if value is None or value is UNKNOWN or form == "any":
            return
        if isinstance(form, str):
            if not self.fits(form, value, path):
                yield _mistyped(path, _WORDS.get(form, f"an {form}"), value)
        elif "list" in form or "map" in form or "object" in form:
            yield from self._container(form, value, path)
        elif "one_of" in form:
            if value not in form["one_of"]:
                allowed = ", ".join(str(item) for item in form["one_of"])
                yield CheckFailure(path, f"must be one of {allowed}, not {value!r}")
        else:
            yield from self._union(form["union"], value, path)

    def _container(self, form: Any, value: Any, path: str) -> Iterator[CheckFailure]:
        if "list" in form:
            if not isinstance(value, list):
                yield _mistyped(path, "a list", value)
                return
            for index, item in enumerate(value):
                yield from self._value(form["list"], item, f"{path}[{index}]")
        elif not isinstance(value, dict):
            yield _mistyped(path, "a mapping", value)
        elif "map" in form:
            for name, item in value.items():
                yield from self._value(form["map"], item, join(path, name))
        else:
            owner = form["object"].rpartition(".")[2].removesuffix("Args")
            yield from self.object(self.schema.objects[form["object"]], value, path, owner)

    def _union(self, forms: list[Any], value: Any, path: str) -> Iterator[CheckFailure]:
        """Report the problems of the member with the fewest."""
        faults = [list(self._value(form, value, path)) for form in forms]
        yield from min(faults, key=len)


def _scalar_fits(form: str, value: Any, path: str) -> bool:
    """Return whether a scalar fits; a string with a number or boolean does, as the providers convert it."""
    if form == "asset" or isinstance(value, dict | list):
        return form == "asset" and isinstance(value, dict) and SIGNATURE in value
    if form in ("str", "bool"):
        return form == "str" or isinstance(value, bool) or value in ("true", "false")
    if isinstance(value, str):
        pattern = r"-?\d+" if form == "int" else r"-?\d+(\.\d+)?([eE][-+]?\d+)?"
        return re.fullmatch(pattern, value) is not None
    return not isinstance(value, bool) and (form == "float" or float(value).is_integer())


def _mistyped(path: str, wanted: str, value: Any) -> CheckFailure:
    names = {dict: "a mapping", list: "a list", bool: "a boolean", str: "a string"}
    shown = "" if isinstance(value, dict | list) else f" ({value!r})"
    return CheckFailure(path, f"must be {wanted}, not {names.get(type(value), 'a number')}{shown}")
