"""Functions of the providers that compare values, as kinds of equality; and literal defaults."""

import re
from collections.abc import Mapping
from typing import Any

# Function, without its package -> kind of `rehearsal.core.emulation.equality`.
_FUNCTIONS = {
    "CompareSelfLinkOrResourceName": "name",
    "CompareResourceNames": "name",
    "CompareSelfLinkRelativePaths": "link",
    "CompareSelfLinkCanonicalPaths": "link",
    "CaseDiffSuppress": "case",
    "DurationDiffSuppress": "duration",
    "OptionalSurroundingSpacesSuppress": "space",
    "ipv6RepresentationDiffSuppress": "network",
    "iamMemberCaseDiffSuppress": "member",
    "DiskImageDiffSuppress": "image",
    "SuppressEquivalentPolicyDiffs": "policy",
    "SuppressEquivalentIAMPolicyDocuments": "policy",
    "SuppressEquivalentJSONDiffs": "json",
    "SuppressEquivalentJSONDocuments": "json",
    "SuppressEquivalentJSONOrYAMLDiffs": "json",
    "SuppressEquivalentJSONDocumentsWithEmptySlice": "json",
    "SuppressJsonDiff": "json",
    "SuppressEquivalentStringCaseInsensitive": "case",
    "SuppressEquivalentCIDRBlockDiffs": "network",
    "suppressEqualCIDRBlockDiffs": "network",
    "IAMPolicyType": "policy",
    "NormalizedType": "json",
    "CIDRBlockType": "network",
    "CaseInsensitiveStringEnumType": "case",
    "CaseInsensitiveStringType": "case",
    "OnceADayWindowType": "case",
    "OnceAWeekWindowType": "case",
    "ToLowerSchemaStateFunc": "case",
    "ToUpperSchemaStateFunc": "case",
}
# Texts of functions without a name.
_TEXTS = (
    (re.compile(r"strings\.EqualFold\(|ToLower\(old\w*\) == strings\.ToLower\(new|ToLower\(v"), "case"),
    (re.compile(r"NormalizeJsonString|NormalizeJSON|SuppressEquivalentJSON"), "json"),
    (re.compile(r"ontainerDefinitionsAreEquivalent"), "containers"),
    (re.compile(r"PoliciesAreEquivalent|SuppressEquivalentPolicy"), "policy"),
    (re.compile(r"TrimSpace\("), "space"),
    (re.compile(r'TrimSuffix\(\w+(?:\.\(string\))?, "\."\)'), "dot"),
)
_STATIC = re.compile(r"\w+default\.Static\w+$")
_EMPTY_OR = "EmptyOrDefaultStringSuppress"


def kind_of(node: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of equality of a property, and the function that has none; both may be empty."""
    unknown = ""
    for key in ("DiffSuppressFunc", "StateFunc", "CustomType"):
        given = node.get(key)
        if not isinstance(given, dict):
            continue
        name = str(given.get("func") or given.get("$") or "").rpartition(".")[2]
        text = str(given.get("source") or "")
        name = name or re.split(r"[\[({]", text)[0].rpartition(".")[2]
        found = _FUNCTIONS.get(name) or next((kind for form, kind in _TEXTS if form.search(text)), "")
        if found:
            return found, ""
        if key != "CustomType" and name not in ("", _EMPTY_OR):
            unknown = name
        elif key != "CustomType" and text:
            unknown = "a function without a name"
    return "", unknown


def default_of(node: Mapping[str, Any]) -> Any:
    """The literal default of a property, or None."""
    given = node.get("Default")
    if isinstance(given, dict):
        arguments = given.get("arguments") or []
        given = arguments[0] if _STATIC.search(str(given.get("func"))) and arguments else None
    suppressed = node.get("DiffSuppressFunc")
    if given is None and isinstance(suppressed, dict) and str(suppressed.get("func")).endswith(_EMPTY_OR):
        given = (suppressed.get("arguments") or [None])[0]
    return given if isinstance(given, str | bool | int | float) else None
