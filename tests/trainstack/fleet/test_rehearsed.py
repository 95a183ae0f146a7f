"""Real previews of several clients at one time, by the real engine in the emulated clouds.

Each client has values of its own, canaries, that must not appear in output, files or environment of another.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from infra.engine.golang import ROOT
from rehearsal.client import Rehearsal
from tests.trainstack.cli.command import checked
from tests.trainstack.fleet.agency import add_client, stack_of, write_fleet

CLIENTS = {"quokka": "111122223333", "wombat": "444455556666", "numbat": "777788889999"}
SHELL = "canary-of-the-shell"
CODE = "from trainstack.cli import main; main()"


class Observer:
    """Collects the environments of the descendants of a process, by their working directory."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self.seen: dict[int, tuple[str, dict[str, str]]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            try:
                children = self._root.children(recursive=True)
            except psutil.Error:
                return
            for one in children:
                try:
                    self.seen[one.pid] = (one.cwd(), one.environ())
                except (psutil.Error, OSError):
                    continue

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


class Run:
    """The outcome of `fleet preview --rehearse`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        variables = {
            **os.environ, "PYTHONPATH": str(ROOT), "AWS_SECRET_ACCESS_KEY": SHELL, "AWS_ACCESS_KEY_ID": SHELL,
            "PULUMI_CONFIG_PASSPHRASE": SHELL, "PULUMI_ACCESS_TOKEN": SHELL, "OTHER": SHELL,
        }  # fmt: skip
        reports = ["--junit", str(base / "junit.xml"), "--page", str(base / "page.html")]
        words = ["fleet", "preview", "--rehearse", "--workers", "2", "--format", "json", *reports]
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, *words], cwd=base, env=variables, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        observer = Observer(process.pid)
        self.output, self.errors = process.communicate()
        observer.end()
        self.code = process.returncode
        self.environments = list(observer.seen.values())
        self.document: Any = checked(self.output)

    @property
    def stacks(self) -> dict[str, Any]:
        return {one["client"]: one for one in self.document["stacks"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    base = tmp_path_factory.mktemp("agency")
    for name, account in CLIENTS.items():
        add_client(base, name, account=account)
    broken = base / "numbat" / "Pulumi.numbat-dev.yaml"
    broken.write_text(broken.read_text().replace("max_nodes: 2", "max_nodes: -2"))
    clients = [{"name": name} for name in CLIENTS]
    write_fleet(base, [*clients, {"name": "gone"}])
    yield Run(base)
    for name in CLIENTS:
        Rehearsal(base / name / ".trainstack" / "rehearsal").stop()


def test_broken_clients_are_named_and_the_others_are_previewed(run: Run) -> None:
    assert run.code == 1, run.errors
    states = {name: one["state"] for name, one in run.stacks.items()}
    assert states == {"quokka": "done", "wombat": "done", "numbat": "unusable", "gone": "unusable"}
    for name in ("quokka", "wombat"):
        result = run.stacks[name]["result"]
        assert checked(json.dumps(result))["stack"] == f"{name}-dev"
        assert result["changes"]["create"] > 100
        assert result["findings"], "the policies of the package judged it"
    assert run.stacks["numbat"]["problems"][0]["path"].startswith("layout.machines[0].max_nodes")
    assert [one["code"] for one in run.stacks["gone"]["problems"]] == ["client-folder-missing"]
    prices = [run.stacks[name]["result"]["price"]["expected_usd"] for name in ("quokka", "wombat")]
    assert run.document["price"]["expected_usd"] == pytest.approx(sum(prices), abs=0.01)


def test_reports_agree_with_the_document(run: Run) -> None:
    root = ElementTree.parse(run.base / "junit.xml").getroot()
    counts = [root.get(name) for name in ("tests", "failures", "errors")]
    assert counts == ["4", "0", "2"]
    page = (run.base / "page.html").read_text()
    assert all(name in page for name in (*CLIENTS, "gone"))
    assert "http" not in page.replace("http-equiv", "")


def owner(text: str, base: Path) -> str:
    """The client to which a path belongs; empty for none."""
    parts = Path(text).parts
    return next((name for name in CLIENTS if str(base) in text and name in parts), "")


def foreign(owner: str) -> list[str]:
    return [
        SHELL,
        *(value for name, account in CLIENTS.items() if name != owner for value in (name, account)),
    ]


def test_no_environment_has_a_value_of_another_client_or_of_the_shell(run: Run) -> None:
    owned = [(name, values) for cwd, values in run.environments if (name := owner(cwd, run.base))]
    assert {name for name, _ in owned} == {*CLIENTS}
    for name, values in owned:
        text = json.dumps(values)
        assert [one for one in foreign(name) if one in text] == []
        assert str(run.base / name) in values["HOME"] or str(run.base / ".trainstack") in values["HOME"]
    homes = {name: values["HOME"] for name, values in owned}
    assert len({*homes.values()}) == len(CLIENTS)


def test_no_file_has_a_value_of_another_client_or_of_the_shell(run: Run) -> None:
    looked = 0
    for path in run.base.rglob("*"):
        name = owner(str(path), run.base)
        if not name or path.is_symlink() or not path.is_file() or "venv" in path.parts:
            continue
        content = path.read_bytes()
        assert [one for one in foreign(name) if one.encode() in content] == [], path
        looked += 1
    assert looked > 20
    assert SHELL not in run.output + run.errors


def test_nothing_is_left_of_a_run_but_its_journal_and_logs(run: Run) -> None:
    (folder,) = (run.base / ".trainstack" / "fleet").iterdir()
    assert list((folder / "work").iterdir()) == []
    assert {one.name for one in folder.iterdir()} == {"journal.jsonl", "lock", "work", *CLIENTS}
    assert not (folder.stat().st_mode & 0o077)


def test_another_plan_than_the_shown_one_is_refused_before_anything_is_deployed(run: Run) -> None:
    folder = run.base / "quokka"
    words = ["up", "-s", stack_of("quokka"), "--rehearse", "--yes", "--plan", "0" * 64, "--format", "json"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], cwd=folder, env=variables, check=False, capture_output=True
    )
    assert [one["code"] for one in checked(done.stdout.decode())["problems"]] == ["plan-changed"]
    assert done.returncode == 2
    assert not any(Rehearsal(folder / ".trainstack" / "rehearsal").status()["resources"].values())
