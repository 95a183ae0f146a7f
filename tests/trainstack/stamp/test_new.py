"""`trainstack new` from the command line: price and verdict come before the first file."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra import stackspec
from infra.errors import UserError
from infra.exit_codes import ExitCode
from infra.places import PACKAGES
from tests.trainstack.cli.command import run
from tests.trainstack.stamp.test_client import choices
from trainstack.stamp import advised, client, lock
from trainstack.stamp.choices import ClientChoices
from trainstack.stamp.clouds import PAIRS
from trainstack.stamp.verdict import Judging


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_client_is_priced_judged_and_then_written(tmp_path: Path) -> None:
    words = ("acme", "--yes", "--profile", "small", "--region", "us-east-1", "--owner", "ml@acme.com")
    code, dry = run("new", *words, "--dry-run")
    assert code == 0 and [*tmp_path.iterdir()] == []
    code, printed = run("new", *words)
    assert code == 0 and all(text in dry for text in lock.read(tmp_path / "acme").texts.values())
    for stack in ("acme-dev", "acme-prod"):
        assert f"{stack}\n  cost per month  $" in printed
        assert stackspec.load_file(stack, tmp_path / "acme").spec.name == stack
    assert printed.count(" 0 violations") == 2 and "Wrote" in printed
    assert printed.count("\n  not priced  ") == 1, "the same of both environments"
    assert (tmp_path / "acme" / ".trainstack" / "program").is_dir()
    with pytest.raises(UserError) as refused:
        run("new", *words)
    assert refused.value.codes == (("client-file-exists", "CLIENT"),)


FIRST = {("small", "gcp")}
OTHERS = [pytest.param(*pair, marks=pytest.mark.more) for pair in sorted(PAIRS - FIRST)]


@pytest.mark.parametrize(("profile", "cloud"), [*sorted(FIRST), *OTHERS])
def test_no_policy_is_violated_by_a_new_client(profile: str, cloud: str) -> None:
    files = client.render(choices(profile, cloud))
    with Judging(cloud, profile) as judging:
        verdicts = judging.verdicts(files.texts, "acme", [*files.loaded])
    assert {stack: [*one.violations] for stack, one in verdicts.items()} == {"acme-dev": [], "acme-prod": []}
    assert all(one.counts["pass"] > 40 for one in verdicts.values())


def test_a_violation_is_shown_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = "    settings:\n      required_tags: {colour: .+}\n"
    monkeypatch.setattr("trainstack.stamp.stack_file.policy_settings", lambda _: settings)
    code, printed = run("new", "acme", "--yes", "--profile", "small")
    assert code == ExitCode.VIOLATIONS and "MLS-TAG" in printed and "colour" in printed
    assert [*tmp_path.iterdir()] == []


def test_faulty_settings_of_policies_are_reported_as_such() -> None:
    files = client.render(choices("small"))
    texts = {**files.texts, client.AUDIT: "environments: {acme-dev: {settings: {colour: red}}}\n"}
    with Judging("aws", "small") as judging, pytest.raises(UserError) as refused:
        judging.verdicts(texts, "acme", ["acme-dev"])
    assert {code for code, _ in refused.value.codes} == {"audit-file-invalid-value"}


def advice(folder: Path, *words: str) -> Path:
    file = folder / "advice.json"
    file.write_text(run("advise", "--parameters", "7B", "--tokens", "500M", *words, "--format", "json")[1])
    return file


@pytest.mark.parametrize(
    ("people", "words"),
    [("3", ("--spot",)), ("4", ("--cloud", "gcp")), ("8", ("--cloud", "aws", "--method", "lora"))],
)
def test_advice_gives_cloud_region_size_and_a_machine(
    people: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    file = advice(tmp_path, "--people", people, *words)
    document, found = json.loads(file.read_text()), advised.read(file)
    best = document["best"]
    assert found.pop("profile") == document["profile"]
    files = client.render(ClientChoices("acme", profile=document["profile"], **found))
    spec: Any = files.loaded["acme-dev"].spec
    assert (spec.cloud, spec.region) == (best["machine"]["cloud"], best["price"]["region"])
    first = (spec.layout.machines if document["profile"] == "small" else spec.layout.pools)[0]
    assert first.machine.removeprefix("ml.") == best["machine"]["name"]
    assert (first.purchase.kind, first.max_nodes) == (best["price"]["market"], max(2, best["count"]))


def test_advice_for_a_size_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    file = advice(tmp_path, "--people", "30", "--cloud", "gcp")
    with pytest.raises(UserError) as refused:
        run("new", "acme", "--yes", "--from-advice", str(file))
    assert refused.value.codes == (("advice-of-other-size", "--from-advice"),)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "advice-unreadable"),
        ("[", "advice-unreadable"),
        ("{}", "advice-unknown-schema"),
        ('{"schema": "trainstack.advice/1", "best": null}', "advice-without-machine"),
        ('{"schema": "trainstack.advice/1", "best": {"count": 1}}', "advice-unknown-schema"),
    ],
)
def test_a_file_that_is_no_advice_is_refused(text: str | None, code: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "advice.json").write_text(text)
    with pytest.raises(UserError) as refused:
        run("new", "acme", "--yes", "--from-advice", str(tmp_path / "advice.json"))
    assert refused.value.codes == ((code, "--from-advice"),)


def test_an_option_that_contradicts_advice_is_refused(tmp_path: Path) -> None:
    file = advice(tmp_path, "--people", "3", "--cloud", "aws")
    with pytest.raises(UserError) as refused:
        run("new", "acme", "--yes", "--cloud", "gcp", "--from-advice", str(file))
    assert refused.value.codes == (("advice-of-other-cloud", "--cloud"),)


def test_a_terminal_is_asked_for_what_is_missing(tmp_path: Path) -> None:
    mine, its = os.openpty()
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from trainstack.cli import main; main()"
    command = [sys.executable, "-P", "-c", program, str(PACKAGES), "new", "acme", "--owner", "ml@acme.com"]
    started = subprocess.Popen(command, cwd=tmp_path, stdin=its, stdout=its, stderr=its)
    os.close(its)
    os.write(mine, b"azure\ngcp\nsmall\n\n700\n\ny\n")
    shown = b""
    with contextlib.suppress(OSError):  # its end
        while part := os.read(mine, 4096):
            shown += part
    assert started.wait() == 0, shown.decode()
    spec: Any = stackspec.load_file("acme-prod", tmp_path / "acme").spec
    assert (spec.cloud, spec.layout.profile, spec.budget.monthly_usd) == ("gcp", "small", 700)
    assert spec.region == client.render(choices("small", "gcp")).choices.region
    assert shown.index(b"cost per month") < shown.index(b"Wrote")


def test_a_rehearsal_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def failed(texts: Mapping[str, str], name: str, stack: str) -> int:
        seen.append((set(texts), name, stack))
        return ExitCode.FAILED

    monkeypatch.setattr("trainstack.stamp.rehearsed.up", failed)
    code, _ = run("new", "acme", "--yes", "--profile", "small", "--owner", "ml@acme.com", "--rehearse")
    assert code == ExitCode.FAILED and [*tmp_path.iterdir()] == []
    assert seen == [(set(client.render(choices("small")).stamped), "acme", "acme-dev")]


@pytest.mark.more
def test_a_rehearsal_validates_the_stack_before_the_first_file(tmp_path: Path) -> None:
    words = ("new", "acme", "--yes", "--profile", "small", "--owner", "ml@acme.com", "--rehearse")
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from trainstack.cli import main; main()"
    command = [sys.executable, "-P", "-c", program, str(PACKAGES), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.index("smoke result") < done.stdout.index("Wrote")
    assert {path.name for path in tmp_path.iterdir()} == {"acme"}
    assert not (tmp_path / "acme" / ".trainstack" / "rehearsal").exists()
