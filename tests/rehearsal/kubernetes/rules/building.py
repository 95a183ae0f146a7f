"""Builders of rule examples: a valid object, and a change that breaks one rule."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal.core.model import Properties

GONE = object()
Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """One rule: `base` with `good` breaks nothing, `base` with `bad` breaks this rule at `path` and no other.

    Changes are dotted paths; `world` is what the cluster holds: (type, inputs).
    """

    rule: str
    token: str
    base: Properties
    bad: Changes
    path: str
    good: Changes = field(default_factory=dict)
    world: Sequence[tuple[str, Properties]] = ()
    custom: bool = False

    @property
    def accepted(self) -> Properties:
        return but(self.base, self.good)

    @property
    def refused(self) -> Properties:
        return but(self.base, self.bad)


def but(base: Properties, changes: Changes) -> Properties:
    """A copy with changes at dotted paths; a number is an index of a list, `~` is a dot in a key."""
    made = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, last = [name.replace("~", ".") for name in path.split(".")]
        here: Any = made
        for name in parents:
            here = here[int(name)] if isinstance(here, list) else here.setdefault(name, {})
        if isinstance(here, list):
            here.insert(int(last), value) if int(last) == len(here) else here.__setitem__(int(last), value)
        elif value is GONE:
            del here[last]
        else:
            here[last] = value
    return made


def named(name: str = "x", **fields: Any) -> Properties:
    return {"metadata": {"name": name}, **fields}


def spaced(name: str = "x", **fields: Any) -> Properties:
    return {"metadata": {"name": name, "namespace": "lab"}, **fields}


def pod(**spec: Any) -> Properties:
    return spaced("p", spec={"containers": [{"name": "main", "image": "python:3.11"}], **spec})


def deployment(**spec: Any) -> Properties:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    return spaced("web", spec={"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec})


def job(**spec: Any) -> Properties:
    return spaced("train", spec={"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}, **spec})


def indexed() -> Properties:
    return job(completionMode="Indexed", completions=2, parallelism=2)


def cron_job() -> Properties:
    return spaced("nightly", spec={"schedule": "0 3 * * *", "jobTemplate": {"spec": job()["spec"]}})
