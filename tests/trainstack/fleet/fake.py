"""Commands of stacks that do what `behaviour.py` in the client's folder says, in place of an engine.

They are real processes, started, watched and interrupted as those of the product.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from infra.engine.golang import ROOT
from tests.trainstack.fleet.agency import add_client, write_fleet

PROGRAM = """
import json, os, pathlib, sys, time

words = sys.argv[1:]
command, stack = words[0], words[words.index("-s") + 1] if "-s" in words else words[-1]
state = pathlib.Path(".trainstack")
calls = state / "calls.txt"


def called(command):
    return sum(line.startswith(command) for line in calls.read_text().splitlines())


def answer(code=0, **values):
    price = {"minimum_usd": 1.0, "expected_usd": 2.0, "maximum_usd": 3.0, "items": [], "not_priced": []}
    document = {"schema": "fake", "stack": stack, "succeeded": not code, "errors": [], "findings": []}
    document |= {"changes": {"create": 3}, "plan": "digest", "price": price, "ends": []}
    print(json.dumps({**document, **values}))
    sys.exit(code)


def fail(*errors, code=1):
    answer(code, errors=[*errors])


def refuse(kind):
    problem = {"code": kind, "path": "--plan", "value": None, "rule": "r", "fix": "f"}
    print(json.dumps({"schema": "trainstack.error/1", "exit_code": 2, "problems": [problem]}))
    sys.exit(2)


def hang():
    (state / "running").write_text(str(os.getpid()))
    try:
        while True:
            time.sleep(60)
    except KeyboardInterrupt:
        (state / "interrupted").touch()
        fail("interrupted", code=130)


with calls.open("a") as file:
    file.write(" ".join(words) + "\\n")
exec(pathlib.Path("behaviour.py").read_text())
answer()
"""
_CODE = f"""
import trainstack.fleet.child as child, trainstack.fleet.runner as runner
child.PROGRAM = {PROGRAM!r}
runner._FIRST_PAUSE_S = 0.05
from trainstack.cli import main
main()
"""


def agency(base: Path, behaviours: Mapping[str, str], *, canary: str = "", minutes: float = 30) -> Path:
    """Clients with these behaviours; an empty one answers at once, with changes."""
    for name, behaviour in behaviours.items():
        (add_client(base, name) / "behaviour.py").write_text(behaviour)
    clients = [{"name": name, "tags": ["canary"] if name == canary else []} for name in behaviours]
    write_fleet(base, clients, limits={"workers": 2, "minutes": minutes})
    return base


def start(base: Path, *words: str, ignoring: Collection[int] = ()) -> "subprocess.Popen[str]":
    """A fleet command in a process of its own, with JSON on its output; it begins by ignoring signals."""
    ignored = "".join(f"import signal; signal.signal({int(one)}, signal.SIG_IGN)\n" for one in ignoring)
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", ignored + _CODE, "fleet", *words, "--rehearse", "--format", "json"],
        cwd=base, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: "subprocess.Popen[str]") -> tuple[int, dict[str, str], dict[str, list[str]], str]:
    """(exit code, states and codes of problems by client, standard error)."""
    output, errors = process.communicate()
    assert output, errors
    found = json.loads(output)["stacks"]
    states = {one["client"]: one["state"] for one in found}
    codes = {one["client"]: [problem["code"] for problem in one["problems"]] for one in found}
    return process.returncode, states, codes, errors


def at(base: Path, client: str, file: str) -> Path:
    """The file that a command of a client makes: `running` or `interrupted`."""
    return base / client / ".trainstack" / file


def calls(base: Path, client: str, command: str) -> list[str]:
    """The calls of a command for a client."""
    lines = (base / client / ".trainstack" / "calls.txt").read_text().splitlines()
    return [line for line in lines if line.startswith(f"{command} ")]
