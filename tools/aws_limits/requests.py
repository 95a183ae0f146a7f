"""Write the limits that the services' models state for requests: `rehearsal/aws/provider/requests.json`.

    python -m tools.aws_limits.requests

Lists (of the model, or of its documentation), ranges, lengths, patterns and time zones of members of the
operation that creates a type, by the names of the SDK, where the provider and CloudFormation's schemas have
no list of that property, and for a pattern no other pattern. Ranges and lengths that differ from theirs are
written: both hold. A pattern of a model is not anchored: it must be found in a value. It is the whole of one
only where its text makes no sense else.
"""

import argparse
import importlib.metadata
import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from infra.engine.golang import ROOT
from rehearsal.aws import provider, values
from rehearsal.aws.provider import REQUESTS
from rehearsal.core.rules.facts import of_values
from rehearsal.core.sdk_types import describe
from tools.aws_limits import documented, newer_values, operations
from tools.aws_values import _agrees, limited
from tools.provider_types import tokens
from tools.sdk import defaults

Facts = dict[str, Any]
_NUMBERS = ("integer", "long", "float", "double")
# A class of characters with a quantifier says little unless it is the whole of a text.
_CLASS = re.compile(r"(?:\[(?:\\.|[^\]\\])+\]|\\w)(?:[*+]|\{\d+(?:,\d*)?\})")
_BOUND = re.compile(r"\{\d+,\d+\}")
# Constructs of other dialects, or nested repetitions without a mark between: such a search may take for ever.
_FOREIGN = re.compile(r"\\[pPzZAx\\]|\[\[|\[:|&&|[*+}]\)[*+{]|\(\?[^:=!]")
_GREAT = 10**6
_FAR = 2**53
# (type, kind of fact, path) that services accept against their models, by the documentation of the SDK.
_ACCEPTED = {
    ("cloudfront/distribution:Distribution", "words", "viewerMtlsConfig.mode"),
    ("cognito/userPoolDomain:UserPoolDomain", "pattern", "domain"),
}
_DEEPEST = 5


def whole(pattern: str) -> str | None:
    """A pattern of a model as one that must be found in a text; None if it says nothing that is sure."""
    if _FOREIGN.search(pattern):
        return None
    entire = _CLASS.fullmatch(pattern) or (_BOUND.search(pattern) and not pattern.startswith(".*"))
    anchored = pattern.startswith("^") and pattern.endswith("$")
    found = f"^(?:{pattern})$" if entire and not anchored else pattern
    try:
        judge = re.compile(found)
    except re.error:
        return None
    if judge.search("") and judge.search("é!\n ~"):
        return None
    return found


class Reader:
    """The facts of one type: the members of an operation, walked beside the inputs of the SDK."""

    def __init__(self, token: str, described: Mapping[str, Any], operation: operations.Operation) -> None:
        arguments = defaults.arguments_of(f"aws:{token}")
        assert arguments is not None, token
        self.facts: Facts = {}
        self._objects = described["objects"]
        self._token = token
        mine = provider.facts(token) if token in provider.lines() else {}
        self._others = (mine, values.facts().get(token, {}))
        self._limited = {path for of, path in limited() if of == token}
        self._walk(operation, described["inputs"], defaults.documented(arguments), "", 0)

    def _walk(
        self,
        of: operations.Operation,
        fields: Mapping[str, Any],
        docs: Mapping[str, str],
        path: str,
        depth: int,
    ) -> None:
        texts = {operations.plain(name): text for name, text in docs.items()}
        for member, name in operations.matched(of, fields).items():
            here = f"{path}.{name}" if path else name
            text = texts.get(operations.plain(name), "")
            known = {operations.plain(one) for one in fields}
            required = bool(fields[name]["required"])
            if name not in ("tags", "tagsAll", "region"):
                self._value(of.members[member], fields[name]["type"], (text, known, required), here, depth)

    def _value(self, shape: Any, form: Any, about: tuple[str, set[str], bool], path: str, depth: int) -> None:
        documentation = shape.documentation
        if isinstance(form, dict) and "list" in form:
            if shape.type_name == "list":
                shape = shape.member
            form = form["list"]
            path = path if isinstance(form, dict) else f"{path}[]"
        if isinstance(form, dict) and "object" in form:
            if shape.type_name == "structure" and depth < _DEEPEST:
                inner = operations.Operation("", "", "", shape.members, frozenset())
                docs = defaults.documented(defaults.object_class("aws", form["object"]))
                self._walk(inner, self._objects[form["object"]], docs, path, depth + 1)
        elif isinstance(form, str) and path.replace("[].", ".") not in self._limited:
            for fact, wanted in self._scalar(shape, form, about, path, documentation):
                said = any(path in its.get(one, {}) for its in self._others for one in _ALIKE[fact])
                same = any(its.get(fact, {}).get(path) == wanted for its in self._others)
                if not said and not same and (self._token, fact, path) not in _ACCEPTED:
                    self.facts.setdefault(fact, {})[path] = wanted
                    if form == "str" and not about[2]:
                        self.facts.setdefault("blank", {})[path] = True

    def _scalar(
        self, shape: Any, form: str, about: tuple[str, set[str], bool], path: str, documentation: str
    ) -> Iterator[tuple[str, Any]]:
        text, known, required = about
        limits = shape.metadata
        low, high = limits.get("min"), limits.get("max")
        if limits.get("sensitive"):
            return  # a message would show it
        said = newer_values.spelt(text, known)
        numeric = form in ("int", "float") and shape.type_name in _NUMBERS
        if numeric and (low is not None or high is not None) and _agrees(text, low, high):
            unset = [] if required or low is None or low <= 0 else [[0, 0]]
            # Beyond that a limit is one of the number's form, not of the service.
            yield "ranges", [[low, high if high is None or high < _FAR else None], *unset]
        if form != "str" or shape.type_name != "string":
            return
        if documented.names_a_zone(path, text, documentation):
            yield "form", "zone"
        enum = limits.get("enum") or documented.listed(path, documentation)
        if enum and not newer_values.grows(path, enum):
            yield ("words" if said & {*enum} else "words_any_case"), sorted({*enum} | said)
        if not enum and (low or high is not None):
            least, most = newer_values.length([low or 0, high], text)
            yield "length", [least, _GREAT if most is None else most]
        pattern = None if enum else whole(limits.get("pattern", ""))
        if pattern and not any([*of_values({"pattern": {"a": pattern}}, {"a": word})] for word in said):
            yield "pattern", pattern


# A kind of fact -> kinds after which it says nothing new.
_ALIKE = {
    "words": ("words", "words_any_case"),
    "words_any_case": ("words", "words_any_case"),
    "ranges": ("words",),
    "length": ("words", "words_any_case"),
    "pattern": ("pattern", "words", "words_any_case", "form"),
    "form": ("words", "words_any_case", "form"),
}


def main() -> None:
    """Write the data file."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rows, made = {}, 0
    for token in sorted(tokens("aws")):
        described = describe(f"aws:{token}")
        operation = described and operations.creating(token, described["inputs"])
        if described and operation:
            made += 1
            facts = Reader(token, described, operation).facts
            if facts:
                rows[token] = {"operation": f"{operation.service} {operation.name}", **facts}
    version = importlib.metadata.version("botocore")
    head = json.dumps({"source": f"botocore {version}, input of the operation", "date": "2026-11-29"})
    lines = (f"{json.dumps(token)}: {json.dumps(row, separators=(',', ':'))}" for token, row in rows.items())
    text = head[:-1] + ', "types": {\n' + ",\n".join(lines) + "\n}}\n"
    REQUESTS.write_text(text, encoding="utf-8")
    counts = f"{made} types have an operation, {len(rows)} have facts"
    sys.stdout.write(f"{counts}; {REQUESTS.relative_to(ROOT)}: {len(text)} bytes\n")


if __name__ == "__main__":
    main()
