"""Lists of values in the documentation that a service's model has for a member."""

import re

_CODE = r"<code>\s*[^<]+?\s*</code>"
_SEVERAL = rf"{_CODE}(?:\s*(?:\||,?\s+(?:and|or)|,)\s*{_CODE})*"
# A list that begins a sentence: one inside it is about a case, as are several lists.
_BEGIN = (
    r"(?:^|<p>|[.)]\s)\s*(?:(?i:the)\s+)?(?i:valid|allowed|supported)\s+(?i:values)"
    r"(?:\s+for\s+this\s+parameter)?(?:\s+are)?\s*:?\s*"
)
_ABOUT = re.compile(
    r"(?i:valid|allowed|supported|possible|only)\s+(?i:values?)\b|(?i:comma[- ](?:separated|delimited))"
)
_SENTENCE = re.compile(rf"{_BEGIN}({_SEVERAL})\s*(?:\.(?:\s|<)|</p>)")
_ITEMS = re.compile(rf"{_BEGIN}</p>\s*<ul>(.*?)</ul>", re.DOTALL)
_ITEM = re.compile(rf"<p>\s*(?:[^<]* - )?(?:<b>\s*)?({_CODE})")
_ENGINE = re.compile(r"(?:^|\.)engine(?:Name)?$")
_WORD = re.compile(r"[A-Za-z0-9_-]+")


def listed(path: str, documentation: str) -> frozenset[str]:
    """The values that a documentation lists as the valid ones: a sentence of them alone, or a list of them.

    None for engines, and where a value has a dot or another mark: lists of machines, versions and ARNs grow.
    """
    if _ENGINE.search(path) or len(_ABOUT.findall(documentation)) != 1:
        return frozenset()
    found = _SENTENCE.search(documentation)
    parts = [found[1]] if found else []
    if not parts and (items := _ITEMS.search(documentation)):
        parts = [one[1] if (one := _ITEM.search(item)) else "?" for item in items[1].split("<li>")[1:]]
    codes = (code for part in parts for code in re.findall(r"<code>([^<]+)</code>", part) or ["?"])
    words = [word.strip() for code in codes for word in code.split("|")]
    return frozenset(words if all(_WORD.fullmatch(word) for word in words) else ())


def names_a_zone(name: str, *texts: str) -> bool:
    """Return whether a property takes a time zone of IANA's database, by its name and its documentation."""
    zone = name.lower().endswith("timezone")
    return zone and any(re.search(r"IANA|`[A-Z][a-z]+/[A-Z][a-z]+`", one) for one in texts)
