"""Values that facts allow and refuse, by which a provider confirms them."""

from collections.abc import Iterator
from typing import Any

from tools.aws_limits.values import BAD, Facts, fits

_FORMED = {
    "arn": "arn:aws:iam::123456789012:role/a",
    "json": "{}",
    "url": "https://example.com/",
    "boolean": "true",
}


def refused(found: Facts) -> Iterator[Any]:
    """A value for each fact that it does not allow."""
    for fact, wanted in found.items():
        if "words" in fact:
            yield BAD if isinstance(wanted[0], str) else -98765
        elif fact == "ranges":
            tops = [high for _, high in wanted]
            value = min(low for low, _ in wanted) - 1 if None in tops else max(tops) + 1
            yield str(value) if "form" in found else value
        elif fact == "length" and wanted[1]:
            yield "a" * (wanted[1] + 1)
        elif fact in ("pattern", "form"):
            yield '!?é~ "'


def allowed(found: Facts) -> Iterator[Any]:
    """Values that all facts allow; none where no value is sure."""
    lowest, highest = found.get("length", (0, None))
    if "words" in found:
        yield found["words"][0]
    elif "form" in found:
        yield from [_FORMED[found["form"]]] if found["form"] in _FORMED else []
    elif "ranges" in found:
        yield next(one for span in found["ranges"] for one in span if one is not None)
    elif "length" in found:
        sizes = {max(lowest or 1, 1), min(highest or 20, 5000)}
        yield from (text for size in sorted(sizes) if fits(found, text := "a" * size))
