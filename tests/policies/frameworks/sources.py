"""Holds what tables of frameworks call verified against the mappings that they name.

    python -m tests.policies.frameworks.sources PROWLER CISO_ASSISTANT

Both are Git checkouts, or bare repositories, of prowler-cloud/prowler and intuitem/ciso-assistant-community.
Checks that prowler is said to have have to be under the control there; points of focus under the criterion.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import yaml

from policies.frameworks.framework import Framework, frameworks
from policies.rules import CATALOG

_CHECK = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+){2,}\b")
_FOCUS = re.compile(r"points? of focus (.+?)(?:;|$)")
_MAPPINGS = ("aws", "gcp", "kubernetes")
_SOC2 = "backend/library/libraries/soc2_2017_with_rev_2022.yaml"
Read = Callable[[str], str]
"""The text of a file of a repository, by its path."""


def wrong(framework: Framework, prowler: Read, ciso: Read) -> Iterator[str]:
    """What a framework's references say that the mappings do not."""
    reported = {(one.control, one.verified) for one in framework.references if one.verified}
    if framework.key == "iso27001":
        known = _checks(prowler)
        for control, text in sorted(reported):
            for check in _CHECK.findall(text):
                if check not in known.get(control, ()):
                    yield f"{control}: prowler has no {check} there"
    elif framework.key == "soc2":
        points = _points(ciso)
        for control, text in sorted(reported):
            for named in _FOCUS.findall(text):
                if not _are_points(named, points.get(control, set())):
                    yield f"{control}: no point of focus {named}"


def _checks(prowler: Read) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for provider in _MAPPINGS:
        text = prowler(f"prowler/compliance/{provider}/iso27001_2022_{provider}.json")
        for row in json.loads(text)["Requirements"]:
            found.setdefault(row["Id"], set()).update(row["Checks"])
    return found


def _points(ciso: Read) -> Mapping[str, set[str]]:
    """The names of the points of focus of each criterion; theirs are `CC6.1.3`, `[TSC] Name — text`."""
    found: dict[str, set[str]] = {}
    for row in yaml.safe_load(ciso(_SOC2))["objects"]["framework"]["requirement_nodes"]:
        name, dash, _ = (row.get("description") or "").partition(" — ")
        if dash:
            plain = re.sub(r"^\[\w+\] ", "", name).lower()
            found.setdefault((row.get("ref_id") or "").rpartition(".")[0], set()).add(plain)
    return found


def _are_points(named: str, known: set[str]) -> bool:
    """Whether a list of names, which may have commas themselves, is of points that are known."""
    rest = named.lower()
    for point in sorted(known, key=len, reverse=True):
        rest = rest.replace(point, "")
    return not rest.strip(", ")


def of_repository(folder: Path) -> Read:
    """Reads files of the newest commit of a repository. Raises CalledProcessError for one that lacks them."""

    def read(path: str) -> str:
        command = ["git", "-C", str(folder), "show", f"HEAD:{path}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    return read


if __name__ == "__main__":
    sources = [of_repository(Path(folder)) for folder in sys.argv[1:3]]
    said = [line for one in frameworks(CATALOG.rules) for line in wrong(one, sources[0], sources[1])]
    print("\n".join(said) or "all is as it says")  # noqa: T201 - a script
    sys.exit(1 if said else 0)
