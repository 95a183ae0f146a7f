"""The verdict of the policies on rendered stack files, without an engine or a cloud."""

import datetime
import gc
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from infra.errors import Problem, UserError
from infra.places import PACKAGES
from infra.stackspec import load_file
from trainstack.stamp import folder as folders

_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from trainstack.stamp import verdict; verdict.main()"


@dataclass(frozen=True)
class StackVerdict:
    """Outcomes of the policies on a stack: of what its program requests, before providers add defaults."""

    resources: int
    counts: Mapping[str, int]
    """Outcomes by result, such as `pass`."""
    violations: Sequence[str] = ()
    plan: Mapping[str, str] = field(default_factory=dict)
    """Digests of the planned inputs, by type and name, to compare two plans."""
    notes: Sequence[str] = ()
    """What the stack was judged without."""

    @property
    def line(self) -> str:
        """The verdict on one line; what only a deployment knows is undetermined."""
        found = {name: self.counts.get(name, 0) for name in ("pass", "fail", "waived", "undetermined")}
        return (
            f"{found['fail']} violations, {found['waived']} waived, {found['pass']} passed, "
            f"{found['undetermined']} undetermined before a deployment; {self.resources} resources"
        )


class Judging:
    """A process that composes stacks and judges them; it loads the SDKs of a cloud while files are rendered.

    A process of its own: the SDK of Pulumi has one stack in a process, and its settings are global.
    """

    def __init__(self, cloud: str, profile: str) -> None:
        command = [sys.executable, "-P", "-c", _PROGRAM, str(PACKAGES), cloud, profile]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def verdicts(
        self, texts: Mapping[str, str], project: str, stacks: Sequence[str]
    ) -> dict[str, StackVerdict]:
        """The verdict on each stack of rendered files. Raises UserError for faulty settings or waivers."""
        with tempfile.TemporaryDirectory() as folder:
            folders.write(texts, Path(folder))
            answer = self._answer(json.dumps([folder, project, [*stacks]]))
        found = dict(zip(stacks, json.loads(answer), strict=True))
        if problems := [_problem(row, folder) for one in found.values() for row in one.get("problems", ())]:
            raise UserError(dict.fromkeys(problems))
        return {stack: StackVerdict(**one) for stack, one in found.items()}

    def _answer(self, request: str) -> str:
        printed, errors = self._process.communicate(request)
        if self._process.returncode:
            raise RuntimeError(f"the stacks cannot be judged: {errors.strip()[-2000:]}")
        return printed


def _problem(row: dict[str, Any], folder: str) -> Problem:
    """The problem in a row, with paths in the client's folder in place of the copy."""
    code = row.pop("code")
    texts = {key: one.replace(f"{folder}/", "") for key, one in row.items() if isinstance(one, str)}
    return Problem(**{**row, **texts}, code=code)


def main() -> None:
    """Judge the stacks that standard input names, for `Judging`: cloud and profile are in the arguments."""
    gc.disable()  # a second of a process that lives for four
    load(*sys.argv[2:])
    sys.stdout.write(judged(sys.stdin.read()))
    sys.stdout.flush()
    os._exit(0)  # the garbage of a composition takes most of a second at exit


def load(cloud: str, profile: str) -> None:
    """Import all that judges stacks of a cloud."""
    from stacks import sdk  # noqa: PLC0415 - only the process that judges needs it

    sdk.light_types()
    kind = "jobs" if profile == "small" else "cluster"
    for module in (
        f"stacks.clouds.{cloud}.{kind}",
        f"stacks.layouts.{kind}",
        "trainstack.stamp.planned",
        "policies.judge",
    ):
        import_module(module)


def judged(request: str) -> str:
    """The verdicts on the stacks that a request of `Judging` names, as JSON."""
    folder, project, stacks = json.loads(request)
    judge = partial(_document, Path(folder), project)
    if sys.platform == "linux" and len(stacks) > 1:  # elsewhere, processes cannot be copied safely
        with multiprocessing.get_context("fork").Pool(len(stacks)) as pool:
            found = pool.map(judge, stacks)
    else:
        found = [judge(stack) for stack in stacks]
    return json.dumps(found)


def _document(folder: Path, project: str, stack: str) -> Mapping[str, Any]:
    try:
        return asdict(_judged(folder, project, stack))
    except UserError as error:
        return {"problems": [{**asdict(one), "value": _transferred(one.value)} for one in error.problems]}


def _transferred(value: object) -> object:
    """A value of a problem in a form that JSON keeps."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _judged(folder: Path, project: str, stack: str) -> StackVerdict:
    from policies.judge import Judge  # noqa: PLC0415 - only the process that judges needs them
    from policies.report.texts import found, place  # noqa: PLC0415
    from trainstack.stamp import planned, policy_sources  # noqa: PLC0415

    files = policy_sources.of(stack, folder)
    judge = Judge.read(files.config, files.waivers, datetime.date.today(), files.environment)
    resources = planned.resources(load_file(stack, folder).spec, project)
    outcomes, _ = judge.judged(resources)
    violations = [
        f"{one.rule.id} {place(one)}: {found(one)}"
        for one in outcomes
        if one.result == "fail" and not one.advisory
    ]
    plan = {f"{one.kind} {one.name}": _digest(one.props) for one in resources}
    counts = {str(result): number for result, number in Counter(one.result for one in outcomes).items()}
    return StackVerdict(len(resources), counts, violations, plan, files.notes)


def _digest(properties: object) -> str:
    return hashlib.sha256(json.dumps(_comparable(properties)).encode()).hexdigest()


def _comparable(value: Any) -> Any:
    """A value without the order of its keys, and without the reasons why parts of it are unknown."""
    from policies.resource import is_unknown  # noqa: PLC0415

    if is_unknown(value):
        return "unknown"
    if isinstance(value, dict):
        return sorted((str(key), _comparable(one)) for key, one in dict.items(value))
    return [_comparable(one) for one in value] if isinstance(value, list) else repr(value)
