"""`trainstack report`: files, gaps with their reasons, and input that is refused."""

import json
from pathlib import Path

import jsonschema
import pytest

from infra.errors import UserError
from infra.stackspec.load import CONFIG
from tests.trainstack.cli.command import run, run_json, schemas
from tests.trainstack.dossier import given
from tests.trainstack.dossier.given import STACKS, facts
from trainstack.cli.clients.collected import Wanted, collect
from trainstack.dossier.document import document


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
    for one in (facts(stack), given.absent(stack)):
        checker.validate(json.loads(json.dumps(document(one))))


def test_one_page_of_many_reports(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    for name, one in (
        ("acme/dev", facts("dev-aws")),
        ("small", facts("small-gcp")),
        ("new", given.absent("dev-aws")),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(document(one)))
    (tmp_path / "package.json").write_text("{}")
    code, made = run_json(
        "report", "--fleet", str(tmp_path), "--out", str(tmp_path / "all.html"), "--at", "2026-11-28"
    )
    assert code == 0
    rows = {row["file"]: row for row in made["stacks"]}
    assert {*rows} == {"dev", "small", "new"}
    assert made["expected_usd"] == pytest.approx(sum(row["expected_usd"] for row in rows.values()))
    assert rows["dev"]["attention"] and not rows["new"]["attention"]
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
