"""Identities that the attribute condition of a workload identity provider admits."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from infra.cel import OPEN, CelError, CelNode, constant, parse, path, with_names
from policies.resource import UndeterminedError
from policies.rules.identity.issuers import Issuer, issuer_of

Verdict = bool | None
"""Identities are limited or not; None if it is not known."""
_TRANSPARENT = ("call:lowerAscii", "call:upperAscii", "call:trim", "call:string")
# Values of tokens of strangers: a pattern that matches one of them limits nothing.
_STRANGERS = ("", "x", "stranger/project", "repo:stranger/project:ref:refs/heads/main", "0123456789")


def is_limited(condition: str, mapping: Mapping[str, Any], issuer: str) -> bool:
    """Return whether a condition admits only identities of a named organization, project or subject.

    `mapping` is that of the provider: attributes stand for their expressions. Raises UndeterminedError for a
    condition that this package cannot read.
    """
    try:
        whole = parse(condition)
        names = {key: parse(str(value)) for key, value in mapping.items()}
    except (CelError, RecursionError) as error:
        raise UndeterminedError(f"the condition is not understood at {str(error)!r}") from None
    verdict = _Condition(issuer_of(issuer)).limits(_mapped(whole, names))
    if verdict is None:
        raise UndeterminedError("it is not known which identities the condition admits")
    return verdict


def _mapped(node: CelNode, names: Mapping[str, CelNode]) -> CelNode:
    """The condition in claims of the token: `attribute.x` and `google.x` by their mapping."""
    found = names.get(".".join(path(node)))
    if found is not None:
        return found
    return CelNode(node.kind, tuple(_mapped(part, names) for part in node.parts), node.value)


@dataclass(frozen=True)
class _Condition:
    issuer: Issuer

    def limits(self, node: CelNode, wanted: bool = True) -> Verdict:
        """Return whether the identities with this value of an expression are limited."""
        known = constant(node)
        if known is not OPEN:
            return bool(known) is not wanted
        return _BY_KIND.get(node.kind, _Condition.unknown)(self, node, wanted)

    def unknown(self, node: CelNode, wanted: bool) -> Verdict:
        # A claim alone, such as email_verified, is of anybody.
        return False if path(node) or not wanted else None

    def inverse(self, node: CelNode, wanted: bool) -> Verdict:
        return self.limits(node.parts[0], not wanted)

    def both(self, node: CelNode, wanted: bool) -> Verdict:
        return (_any if wanted else _all)(self.limits(part, wanted) for part in node.parts)

    def either(self, node: CelNode, wanted: bool) -> Verdict:
        return (_all if wanted else _any)(self.limits(part, wanted) for part in node.parts)

    def choice(self, node: CelNode, wanted: bool) -> Verdict:
        if_, then, else_ = node.parts
        first = _any([self.limits(if_, True), self.limits(then, wanted)])
        return _all([first, _any([self.limits(if_, False), self.limits(else_, wanted)])])

    def equal(self, node: CelNode, wanted: bool) -> Verdict:
        same = (node.kind == "==") is wanted
        for one, other in (node.parts, node.parts[::-1]):
            value = constant(other)
            if isinstance(value, bool):
                return self.limits(one, value is same)
            if value is not OPEN:
                return same and self.named(one, value)
        return False  # of two claims, an identity has any pair

    def within(self, node: CelNode, wanted: bool) -> Verdict:
        one, many = node.parts
        if not wanted:
            return False
        if many.kind != "list":
            return None if constant(one) is OPEN else self.named(many, constant(one))
        return _all(self.equal(CelNode("==", (one, item)), True) for item in many.parts)

    def text(self, node: CelNode, wanted: bool) -> Verdict:
        if not wanted or node.kind in ("call:endsWith", "call:contains"):
            # The beginning of a claim names its organization; of an issuer of its own, any part may.
            return wanted and not self.issuer.shared and bool(_text(node)) and self._is_claim(node.parts[0])
        value, claim = _text(node), _claim(node.parts[0])
        if value == "":
            return False if len(node.parts) == 2 and constant(node.parts[1]) == "" else None
        if not claim:
            return None
        if node.kind == "call:startsWith":
            return self.issuer.names(claim, value, whole=False)
        return self._pattern(claim, value)

    def _pattern(self, claim: str, pattern: str) -> Verdict:
        try:
            if any(re.search(pattern, value) for value in _STRANGERS):
                return False
        except re.error:
            return None
        if not self.issuer.shared:
            return self.issuer.names(claim, pattern, whole=True)
        if not pattern.startswith("^") or "|" in pattern:
            return False if not pattern.startswith("^") else None
        prefix = re.match(r"(?:[^\\\[\](){}.*+?^$|]|\\[^\w])*", pattern[1:])
        text = re.sub(r"\\(.)", r"\1", prefix.group()) if prefix else ""
        rest = pattern[1 + len(prefix.group() if prefix else "") :]
        if rest[:1] in ("*", "?", "{"):
            text = text[:-1]
        return self.issuer.names(claim, text, whole=rest == "$")

    def member(self, node: CelNode, wanted: bool) -> Verdict:
        """`LIST.exists(NAME, CONDITION)`; `all` holds for an empty list of claims."""
        if len(node.parts) != 3 or not path(node.parts[1]) or not wanted:
            return None
        many, name, below = node.parts
        items = many.parts if many.kind == "list" else (many,)
        found = (self.limits(with_names(below, {name.value: item})) for item in items)
        if node.kind == "call:all":
            return _any(found) if many.kind == "list" else False
        return _all(found)

    def named(self, node: CelNode, value: Any) -> Verdict:
        """Return whether claims with this value are of a named organization."""
        text = str(int(value)) if isinstance(value, float) else str(value if value is not None else "")
        claim = _claim(node)
        if claim:
            return self.issuer.names(claim, text, whole=True)
        if node.kind == "index" and constant(node.parts[1]) == 0 and node.parts[0].kind == "call:split":
            claim, mark = _claim(node.parts[0].parts[0]), constant(node.parts[0].parts[-1])
            if claim and isinstance(mark, str) and mark:
                return bool(text) and self.issuer.names(claim, text + mark, whole=False)
        return None if self.issuer.shared else bool(text)

    def _is_claim(self, node: CelNode) -> bool:
        return self.issuer.names(_claim(node), "x", whole=True)


_BY_KIND: Mapping[str, Callable[[_Condition, CelNode, bool], Verdict]] = {
    "not": _Condition.inverse,
    "&&": _Condition.both,
    "||": _Condition.either,
    "?": _Condition.choice,
    "==": _Condition.equal,
    "!=": _Condition.equal,
    "in": _Condition.within,
    **dict.fromkeys(("<", "<=", ">", ">=", "call:has"), lambda *_: False),
    **dict.fromkeys((f"call:{one}" for one in ("exists", "exists_one", "all")), _Condition.member),
    **dict.fromkeys(
        (f"call:{one}" for one in ("startsWith", "matches", "endsWith", "contains")), _Condition.text
    ),
}


def _text(node: CelNode) -> str:
    value = constant(node.parts[-1]) if len(node.parts) == 2 else ""
    return value if isinstance(value, str) else ""


def _claim(node: CelNode) -> str:
    """The claim of `assertion.CLAIM`, or an attribute without mapping, under its own name."""
    while node.kind in _TRANSPARENT:
        node = node.parts[0]
    names = path(node)
    return names[-1] if len(names) > 1 else ""


def _any(verdicts: Iterable[Verdict]) -> Verdict:
    found = list(verdicts)
    return True if True in found else None if None in found else False


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    found = list(verdicts)
    return False if False in found else None if None in found else bool(found)
