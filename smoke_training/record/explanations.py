"""Explanations of the checks (pure): measurement, judgement, reason. The texts are in `explanations.toml`."""

import importlib.resources
import tomllib
from collections.abc import Iterator, Mapping

from smoke_training.formulae.bandwidth import COLLECTIVES

_ANY = "collective.{name}"
"""Key of the texts of every collective."""


def _texts() -> Iterator[tuple[str, tuple[str, str]]]:
    file = importlib.resources.files(__package__).joinpath("explanations.toml")
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    phrases = found.pop("phrases")
    for check, texts in found.items():
        for name in COLLECTIVES if check == _ANY else ("",):
            measures, judged = (texts[key].format(name=name, **phrases) for key in ("measures", "judged"))
            yield check.format(name=name), (measures, judged)


# By check: the measurement, and how it is judged.
EXPLANATIONS: Mapping[str, tuple[str, str]] = dict(_texts())
UNKNOWN = ("This version has no explanation of it.", "See its message.")
