"""A stranger's program under the pack in the real engine: verdicts as from its preview and its state."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.policies.pack.engine_rows import of_engine, verdicts_of_audit, verdicts_of_pack
from tests.rehearsal.runs import life

ROOT = Path(__file__).resolve().parents[3]
PACK = ROOT / "policies"
PROGRAM = ROOT / "tests" / "rehearsal" / "projects" / "programs" / "website"
TRAINSTACK = Path(sys.executable).with_name("trainstack")
Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Stranger:
    """The program's stack in a home of its own."""

    folder: Path

    def pulumi(self, words: str, streaming: bool = False) -> Done:
        return self._run("rehearse", "run", str(PROGRAM), "--", *shlex.split(words), streaming=streaming)

    def audit(self, words: str) -> Any:
        done = self._run("audit", *shlex.split(words), "--format", "json")
        assert done.stderr == ""
        return json.loads(done.stdout)

    def file(self, name: str, content: str) -> Path:
        (self.folder / name).write_text(content)
        return self.folder / name

    def _run(self, *arguments: str, streaming: bool = False) -> Done:
        variables = {
            **os.environ,
            "TRAINSTACK_REHEARSAL_HOME": str(self.folder / "rehearsal"),
            "PULUMI_ENABLE_STREAMING_JSON_PREVIEW": str(streaming).lower(),
        }
        command = [str(TRAINSTACK), *arguments]
        return subprocess.run(command, env=variables, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    folder = tmp_path_factory.mktemp("stranger")
    for _ in life.home(folder):
        yield Stranger(folder)


@pytest.fixture(scope="module")
def planned(stranger: Stranger) -> tuple[Done, Any]:
    """Before anything exists: the preview with the pack, and an audit of the preview without."""
    plain = stranger.pulumi("preview --json --show-sames")
    file = stranger.file("preview.json", plain.stdout[plain.stdout.index("{") :])
    reported = stranger.pulumi(f"preview --json --policy-pack {PACK}", streaming=True)
    return reported, stranger.audit(f"--preview {file}")


@pytest.fixture(scope="module")
def deployed(stranger: Stranger, planned: object) -> Path:
    """The export of what an `up` made."""
    done = stranger.pulumi("up --yes --skip-preview")
    assert done.returncode == 0, done.stdout + done.stderr
    file = stranger.folder / "state.json"
    stranger.pulumi(f"stack export --file {file}")
    return file


def test_a_preview_under_the_pack_is_judged_as_its_document(planned: tuple[Done, Any]) -> None:
    done, document = planned
    reported = verdicts_of_pack(of_engine(done.stdout.splitlines()))
    assert done.returncode == 1
    assert reported == verdicts_of_audit(document)
    assert {result for _, _, result, _ in reported} == {"fail", "undetermined"}


def test_a_state_under_the_pack_is_judged_as_its_export(stranger: Stranger, deployed: Path) -> None:
    done = stranger.pulumi(f"policy analyze --file {deployed} --policy-pack {PACK} --json")
    assert done.returncode == 1
    assert "mandatory policy violations were found" in done.stderr
    reported = verdicts_of_pack(of_engine(done.stdout.splitlines()))
    assert reported == verdicts_of_audit(stranger.audit(f"--state {deployed}"))
    assert "fail" in {result for _, _, result, _ in reported}


def test_a_preview_of_what_exists_is_judged_as_its_state(stranger: Stranger, deployed: Path) -> None:
    done = stranger.pulumi(f"preview --json --policy-pack {PACK}", streaming=True)
    reported = verdicts_of_pack(of_engine(done.stdout.splitlines()))
    assert reported == verdicts_of_audit(stranger.audit(f"--state {deployed}"))


def test_what_the_preview_leaves_open_the_state_decides(
    stranger: Stranger, planned: tuple[Done, Any], deployed: Path
) -> None:
    before, after = verdicts_of_audit(planned[1]), verdicts_of_audit(stranger.audit(f"--state {deployed}"))
    known = {(rule, urn) for rule, urn, result, _ in before if result != "undetermined"}
    opened = {(rule, urn) for rule, urn, result, _ in before if result == "undetermined"}
    decided = {(rule, urn) for rule, urn, _, _ in after}
    assert known <= decided
    assert decided - known <= opened


def test_levels_of_policies_and_the_files_of_an_audit_are_kept(
    stranger: Stranger, planned: tuple[Done, Any]
) -> None:
    before = verdicts_of_audit(planned[1])
    first = min(rule for rule, _, result, _ in before if result == "fail")
    # The stack may be deployed by now, and its state decides what the preview left open.
    others = sorted({rule for rule, _, result, _ in before if result in ("fail", "undetermined")} - {first})
    off = stranger.file("off.yaml", json.dumps({"enforcement": dict.fromkeys(others, "disabled")}))
    content = {"all": "advisory", "low-stack": "disabled", "audit": {"config": str(off)}}
    how = stranger.file("pack.json", json.dumps(content))
    done = stranger.pulumi(f"preview --json --policy-pack {PACK} --policy-pack-config {how}", streaming=True)
    assert done.returncode == 0, done.stdout
    reported = of_engine(done.stdout.splitlines())
    assert {one["enforcementLevel"] for one in reported} == {"advisory"}
    assert "low-stack" not in {one["policyName"] for one in reported}
    assert {rule for rule, _, result, _ in verdicts_of_pack(reported) if result == "fail"} == {first}


def test_a_bad_configuration_ends_the_run_with_one_error(stranger: Stranger, planned: object) -> None:
    file = stranger.file("bad.json", json.dumps({"audit": {"waivers": "none.yaml"}}))
    done = stranger.pulumi(f"preview --policy-pack {PACK} --policy-pack-config {file}")
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert "none.yaml: cannot" in output
    assert output.count("error:") == 1, output
    assert "Traceback" not in output
