"""`trainstack new` from the command line: price and verdict come before the first file."""

from pathlib import Path

import pytest

from infra import stackspec
from infra.errors import UserError
from infra.exit_codes import ExitCode
from infra.stackspec.supported import SUPPORTED
from tests.trainstack.cli.command import run
from tests.trainstack.stamp.test_client import choices
from trainstack.stamp import client, lock
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
    assert (tmp_path / "acme" / ".trainstack" / "program").is_dir()
    with pytest.raises(UserError) as refused:
        run("new", *words)
    assert refused.value.codes == (("client-file-exists", "CLIENT"),)


@pytest.mark.parametrize(
    ("profile", "cloud"),
    [
        pair
        if pair in (("small", "gcp"), ("small-cluster", "aws"))
        else pytest.param(*pair, marks=pytest.mark.more)
        for pair in sorted(SUPPORTED)
    ],
)
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
