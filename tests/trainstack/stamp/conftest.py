"""Equal files are judged once in a process, by processes that have loaded the SDKs: loading takes longest.

`test_new.py` judges in processes of the product as well.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

import pytest

from infra.places import PACKAGES
from trainstack.stamp import effects, verdict
from trainstack.stamp.verdict import Judging, StackVerdict

# A copy of the process for each request: the SDK of Pulumi has one stack in a process.
_LOADED = """
import gc, os, sys
sys.path.insert(0, sys.argv[1])
from trainstack.stamp import verdict
gc.disable()
verdict.load(*sys.argv[2:])
for request in sys.stdin:
    if not os.fork():
        try:
            print(verdict.judged(request), flush=True)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    if os.wait()[1]:
        print("failed", flush=True)
"""


class JudgingOnce(Judging):
    """`Judging` that remembers verdicts, in a process per cloud and profile."""

    found: dict[str, dict[str, StackVerdict]] = {}  # noqa: RUF012 - of all objects
    loaded: dict[tuple[str, str], "subprocess.Popen[str]"] = {}  # noqa: RUF012

    def __init__(self, cloud: str, profile: str) -> None:
        self._kind = cloud, profile

    def __exit__(self, *_: object) -> None:
        """The process stays for further files."""

    def verdicts(
        self, texts: Mapping[str, str], project: str, stacks: Sequence[str]
    ) -> dict[str, StackVerdict]:
        key = json.dumps([self._kind, project, [*stacks], dict(texts)], sort_keys=True)
        if key not in self.found:
            self.found[key] = super().verdicts(texts, project, stacks)
        return self.found[key]

    def _answer(self, request: str) -> str:
        if self._kind not in self.loaded:
            command = [sys.executable, "-P", "-c", _LOADED, str(PACKAGES), *self._kind]
            pipe = subprocess.PIPE
            self.loaded[self._kind] = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        process = self.loaded[self._kind]
        assert process.stdin and process.stdout
        process.stdin.write(f"{request}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer.startswith("["):
            raise RuntimeError("the stacks cannot be judged: standard error of the test has the reason")
        return answer


@pytest.fixture(autouse=True, scope="session")
def _judged_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (verdict, effects):
            patch.setattr(module, "Judging", JudgingOnce)
        yield
    for process in JudgingOnce.loaded.values():
        process.communicate()
