"""`trainstack report`: files, gaps with their reasons, and input that is refused."""

import html
import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from infra.engine import stack as engine_stack
from infra.engine.golang import SetupError
from infra.errors import UserError
from infra.exit_codes import ExitCode
from infra.stackspec.load import CONFIG
from tests.trainstack.cli.command import checked, run, run_json, schemas
from tests.trainstack.dossier import given
from tests.trainstack.dossier.given import STACKS, facts
from trainstack.cli.app import app
from trainstack.cli.clients.collected import Wanted, collect
from trainstack.dossier.document import document
from trainstack.dossier.facts import UNREAD


@pytest.fixture(autouse=True)
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pulumi backend without stacks."""
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tmp_path / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "test")


def test_a_stack_that_was_never_deployed_has_a_page_with_its_gaps(tmp_path: Path) -> None:
    page = tmp_path / "dev.html"
    code, made = run_json("report", "-s", "dev-aws", "--out", str(page), "--at", "2026-11-28")
    assert code == 0
    assert (made["state"], made["architecture"]["source"], made["validation"]["verdict"]) == (
        "absent",
        "none",
        "never",
    )
    assert "has no such stack" in made["architecture"]["why"]
    assert made["cost"]["expected_usd"] > 1000
    assert json.loads(page.with_suffix(".json").read_text()) == made
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dev.html", "dev.json", "state"]


@pytest.fixture
def no_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pulumi backend that cannot be read."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tmp_path / "none").as_uri())


@pytest.fixture
def no_pulumi(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the Pulumi CLI."""

    def missing() -> None:
        raise SetupError("the Pulumi CLI is missing")

    monkeypatch.setattr(engine_stack, "require", missing)


@pytest.mark.parametrize(("broken", "code"), [("no_backend", 2), ("no_pulumi", 1)])
def test_a_state_that_cannot_be_read_has_a_page_and_the_exit_code_of_status(
    broken: str, code: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(broken)
    page = tmp_path / "dev.html"
    done = CliRunner().invoke(app, ["report", "-s", "dev-aws", "--out", str(page), "--format", "json"])
    made = checked(done.stdout)
    assert (done.exit_code, made["state"]) == (code, "unknown")
    assert made["state_why"] and made["state_why"] in html.unescape(page.read_text())
    assert made["drift"]["why"] == made["deploy"]["why"] == UNREAD
    assert made["state_why"] in " ".join(done.stderr.split())
    of_status = CliRunner().invoke(app, ["status", "-s", "dev-aws"])
    assert isinstance(of_status.exception, UserError if code == ExitCode.USAGE else SetupError)


@pytest.mark.parametrize(
    ("broken", "code"), [("no_backend", "state-not-readable"), ("backend", "stack-not-found")]
)
def test_a_handover_needs_the_states_or_is_asked_for_its_gaps(
    broken: str, code: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(broken)
    words = ("handover", "-s", "dev-aws", "--out", str(tmp_path / "bundle"), "--at", "2026-11-28")
    with pytest.raises(UserError) as error:
        run(*words)
    assert [one for one, _ in error.value.codes] == [code]
    assert not (tmp_path / "bundle").exists()
    assert run(*words, "--with-gaps")[0] == 0
    assert not (tmp_path / "bundle" / "dev-aws" / "exit").exists()


def test_nothing_is_overwritten_or_half_written(tmp_path: Path) -> None:
    page = tmp_path / "dev.html"
    (tmp_path / "dev.json").write_text("mine")
    for out, code in (
        (page, "report-exists"),
        (tmp_path / "none" / "x.html", "report-folder-missing"),
        (tmp_path / "x.pdf", "report-not-html"),
    ):
        with pytest.raises(UserError) as error:
            run("report", "-s", "dev-aws", "--out", str(out))
        assert [one for one, _ in error.value.codes] == [code]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dev.json", "state"]
    assert (tmp_path / "dev.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("option", "given_", "code"),
    [
        ("--parameters", "many", "number-invalid"),
        ("--method", "magic", "unknown-method"),
        ("--stack", "dev-aw", "stack-file-missing"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, option: str, given_: str, code: str) -> None:
    words = {"--stack": "dev-aws", "--out": str(tmp_path / "x.html"), option: given_}
    with pytest.raises(UserError) as error:
        run("report", *(word for pair in words.items() for word in pair))
    assert [one for one, _ in error.value.codes] == [code]
    assert not (tmp_path / "x.html").exists()


def test_a_stack_file_that_breaks_rules_is_reported_and_one_without_types_is_refused(tmp_path: Path) -> None:
    text = (CONFIG / "Pulumi.dev-aws.yaml").read_text()
    (tmp_path / "Pulumi.broken.yaml").write_text(
        text.replace(
            "rdma: true",
            "rdma: true\n          hours: {days: [MO], start: '09:00', hours: 4, classes: [sweep]}",
        ).replace("zones: [us-east-1b]", "zones: [us-east-1b, us-east-1c]")
    )
    made = document(collect(Wanted("broken", rehearse=False, folder=tmp_path)))
    assert made["problems"]
    assert made["architecture"]["source"] == "none"
    (tmp_path / "Pulumi.broken.yaml").write_text(text.replace("max_nodes: 4", "max_nodes: many"))
    with pytest.raises(UserError) as error:
        collect(Wanted("broken", rehearse=False, folder=tmp_path))
    assert {path for _, path in error.value.codes} == {
        "layout.pools[0].max_nodes",
        "layout.pools[2].max_nodes",
    }


@pytest.mark.parametrize("stack", STACKS)
def test_documents_are_as_their_schema_says(stack: str) -> None:
    checker = jsonschema.Draft202012Validator(schemas()["trainstack.report/1"])
    for one in (facts(stack), given.absent(stack), given.unread(stack)):
        checker.validate(json.loads(json.dumps(document(one))))


def test_one_page_of_many_reports(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    for name, one in (
        ("acme/dev", facts("dev-aws")),
        ("small", facts("small-gcp")),
        ("new", given.absent("dev-aws")),
        ("unread", given.unread("dev-aws")),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(document(one)))
    (tmp_path / "package.json").write_text("{}")
    code, made = run_json(
        "report", "--fleet", str(tmp_path), "--out", str(tmp_path / "all.html"), "--at", "2026-11-28"
    )
    assert code == 0
    rows = {row["file"]: row for row in made["stacks"]}
    assert {*rows} == {"dev", "small", "new", "unread"}
    assert made["expected_usd"] == pytest.approx(sum(row["expected_usd"] for row in rows.values()))
    assert rows["dev"]["attention"] and not rows["new"]["attention"]
    assert rows["unread"]["state"] == "unknown" and rows["unread"]["attention"]
    assert (made["deployed"], made["unknown"]) == (2, 1)
    assert (tmp_path / "all.html").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": "trainstack.report/2"}', '{"schema": "trainstack.report/1"}', "\x80"]
)
def test_a_file_that_is_no_report_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    for given_ in (tmp_path / "x.json", tmp_path):
        with pytest.raises(UserError) as error:
            run("report", "--fleet", str(given_), "--out", str(tmp_path / "all.html"))
        assert [one for one, _ in error.value.codes] == ["report-not-readable"]
    assert not (tmp_path / "all.html").exists()
