"""Settings of a job, from the TRAINSTACK_* variables that its submitter sets."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from smoke_training.reader import DocumentError

PREFIX = "TRAINSTACK_"
MANDATORY = ("owner", "dataset", "code_version")  # a run without these cannot be attributed or repeated
_TEXTS = (
    "module",
    "stack",
    "run",
    "owner",
    "person",
    "team",
    "task",
    "dataset",
    "code_version",
    "image",
    "machine",
)
PORT = 29500  # torchrun's own default


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """One job. Missing texts are empty; `usd_per_hour` is the sum over all nodes."""

    script: str
    module: str = ""
    """Python runs the script as this module (`-m`); empty for a file."""
    arguments: tuple[str, ...] = ()
    gpus: int = 0
    usd_per_hour: float | None = None
    port: int = PORT
    stack: str = ""
    run: str = ""
    owner: str = ""
    person: str = ""
    team: str = ""
    task: str = ""
    dataset: str = ""
    code_version: str = ""
    image: str = ""
    machine: str = ""

    @property
    def missing(self) -> list[str]:
        """Mandatory settings that this run lacks."""
        return [name for name in MANDATORY if not getattr(self, name)]


def read(environment: Mapping[str, str]) -> JobSettings:
    """Read the settings of a job; DocumentError lists every problem."""
    problems: list[str] = []
    script = environment.get(f"{PREFIX}SCRIPT", "")
    if not script:
        problems.append(f"{PREFIX}SCRIPT: missing; must name a file of the folder that was packed")
    found = JobSettings(
        script=script,
        arguments=_arguments(environment, problems),
        gpus=int(_number(environment, "GPUS", problems) or 0),
        usd_per_hour=_number(environment, "COST_PER_HOUR", problems),
        port=int(_number(environment, "MASTER_PORT", problems) or PORT),
        **{name: environment.get(f"{PREFIX}{name.upper()}", "").strip() for name in _TEXTS},
    )
    if problems:
        raise DocumentError(problems)
    return found


def _arguments(environment: Mapping[str, str], problems: list[str]) -> tuple[str, ...]:
    name = f"{PREFIX}ARGUMENTS"
    text = environment.get(name) or "[]"
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        problems.append(f"{name}: got {text[:200]!r}; must be a list of texts (JSON)")
        return ()
    return tuple(found)


def _number(environment: Mapping[str, str], key: str, problems: list[str]) -> float | None:
    name = f"{PREFIX}{key}"
    text = environment.get(name, "").strip()
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        problems.append(f"{name}: got {text!r}; must be a number, at least 0")
        return None
    return found


def parameters(arguments: tuple[str, ...]) -> dict[str, str]:
    """Return the arguments of a script as named parameters: `--lr 3e-4 --bf16 --seed=1 data`.

    An option without a value is "true"; values without an option are `arguments`.
    """
    found: dict[str, str] = {}
    loose: list[str] = []
    pending: str | None = None
    for word in arguments:
        if word.startswith("--") and len(word) > 2:
            name, given, value = word[2:].partition("=")
            found[name] = value if given else "true"
            pending = None if given else name
        elif pending is not None:
            found[pending], pending = word, None
        else:
            loose.append(word)
    if loose:
        found["arguments"] = " ".join(loose)
    return found
