"""Exit codes, errors as text and JSON, and tables in narrow terminals."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import typer

from infra import exit_codes
from infra.engine.console import new_console
from infra.engine.golang import ROOT, SetupError
from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from policies.exit_codes import AuditExitCode
from rehearsal.control import ControlError
from smoke_training import cli
from smoke_training.model import EXIT_CODES, Verdict
from tests.trainstack.cli.command import SCHEMAS, checked, run_json, schemas
from trainstack.cli import app as application
from trainstack.cli import execution
from trainstack.cli.execution import DEBUG_VARIABLE, execute, wants_json
from trainstack.cli.output import print_fields, print_table

PROBLEM = Problem(
    "layout.pools[0].zones", ["a", "b"], "must be one", "Leave one.", code="pool-needs-one-zone"
)


@pytest.mark.parametrize(
    ("arguments", "path", "near"),
    [
        (("statsu",), "arguments", "status"),
        (("queue", "ruls"), "arguments", "rules"),
        (("status", "--stak", "dev-aws"), "--stak", "--stack"),
        (("runs", "-s", "small-aws", "--persn", "ada"), "--persn", "--person"),
    ],
)
def test_an_unknown_command_or_option_names_the_nearest_one(
    arguments: tuple[str, ...], path: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(application.app, arguments) == ExitCode.USAGE
    assert near in capsys.readouterr().err
    assert execute(application.app, [*arguments, "--format", "json"]) == ExitCode.USAGE
    (problem,) = checked(capsys.readouterr().out)["problems"]
    assert (problem["code"], problem["path"]) == ("usage-error", path) and near in problem["rule"]


@pytest.mark.parametrize(
    ("raised", "exit_code", "code"),
    [
        (UserError([PROBLEM]), ExitCode.USAGE, PROBLEM.code),
        (SetupError("kubectl is not installed"), ExitCode.FAILED, "setup-incomplete"),
        (ControlError("the daemon ended"), ExitCode.FAILED, "rehearsal-unavailable"),
        (typer.Abort(), ExitCode.FAILED, "aborted"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
    ],
)
def test_errors_are_text_or_json_with_one_exit_code(
    raised: BaseException, exit_code: int, code: str, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    app = typer.Typer()

    @app.command()
    def fail(form: str = typer.Option("text", "--format", "-f")) -> None:
        raise raised

    assert execute(app, []) == exit_code
    text = capsys.readouterr()
    assert text.err and not text.out and "Traceback" not in text.err
    assert execute(app, ["-f", "json"]) == exit_code
    shown = capsys.readouterr()
    document = checked(shown.out)
    assert not shown.err and document["exit_code"] == exit_code
    (row,) = document["problems"]
    assert row["code"] == code


def test_an_internal_error_names_the_private_file_with_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    monkeypatch.setattr(execution, "STATE", tmp_path / "state")
    app = typer.Typer()

    @app.command()
    def fail(form: str = typer.Option("text", "--format", "-f")) -> None:
        raise ValueError(form)

    assert execute(app, ["-f", "json"]) == ExitCode.FAILED
    (row,) = checked(capsys.readouterr().out)["problems"]
    (file,) = (tmp_path / "state").iterdir()
    assert row["code"] == "internal-error" and str(file) in row["fix"]
    assert "raise ValueError(form)" in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(execution, "STATE", file)  # no folder
    assert execute(app, []) == ExitCode.FAILED
    shown = capsys.readouterr().err
    assert DEBUG_VARIABLE in shown and "Traceback" not in shown
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    with pytest.raises(ValueError, match="text"):
        execute(app, [])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("status --format json", True), ("status --format=json", True), ("runs -f json", True),
        ("runs -fjson", True), ("runs -s json", False), ("run DIR -- --format json", False),
        ("smoke plan --format json", False), ("", False),
    ],
)  # fmt: skip
def test_json_is_recognized_before_parsing(arguments: str, expected: bool) -> None:
    assert wants_json(arguments.split()) is expected


@pytest.mark.parametrize("arguments", ["--help", "explain -s dev-aws"])
@pytest.mark.parametrize(
    ("output", "code", "errors"), [("broken", 141, b""), ("closed", 0, b""), ("full", 1, b"cannot write")]
)
def test_an_output_that_cannot_be_written_is_no_internal_error(
    arguments: str, output: str, code: int, errors: bytes
) -> None:
    program = "import sys; from trainstack.cli import main; sys.argv[0] = 'trainstack'; main()"
    reader, broken = os.pipe()
    os.close(reader)
    target = {"broken": "", "closed": ">&-", "full": ">/dev/full"}[output]
    command = ["sh", "-c", f'exec "$0" -c "$1" {arguments} {target}', sys.executable, program]
    done = subprocess.run(command, cwd=ROOT, stdout=broken, stderr=subprocess.PIPE, check=False)
    os.close(broken)
    assert done.returncode == code and done.stderr.partition(b":")[0] == errors


def test_the_page_has_the_exit_codes_of_every_command() -> None:
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    rows = re.findall(r"^\| (?:`(\w+)` \| )?(\d+) \| (.*) \|$", page, re.MULTILINE)
    every = [("", str(int(code)), text) for code, text in exit_codes.EVERY.items()]
    commands = exit_codes.OF_COMMAND.items()
    assert rows == every + [
        (name, str(int(code)), text) for name, codes in commands for code, text in sorted(codes.items())
    ]
    assert exit_codes.OF_COMMAND["smoke"] == {code: str(name) for name, code in EXIT_CODES.items()}
    assert {int(code) for code in AuditExitCode} == set(exit_codes.OF_COMMAND["audit"])
    assert set(exit_codes.OF_COMMAND) <= {name for group in application.GROUPS.values() for name in group}


def test_every_schema_is_named_after_its_command() -> None:
    assert len(schemas()) == len([*SCHEMAS.rglob("*.schema.json")])
    for schema in schemas().values():
        assert (SCHEMAS / schema["$id"]).is_file() and schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("explain", "layout.pools[0].zones"), "values"),
        (("queue", "rules", "-s", "dev-aws"), "sections"),
        (("advise", "--parameters", "7B", "--tokens", "500M"), "others"),
    ],
)
def test_commands_without_a_deployed_stack_print_json(arguments: tuple[str, ...], name: str) -> None:
    code, found = run_json(*arguments)
    assert code == 0 and found[name]


@pytest.mark.parametrize(
    "arguments", ["queue rules -s dev-aws", "advise --parameters 7B --tokens 5M", "ledger -s no-such"]
)
def test_table_is_another_name_of_text(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = arguments.split()
    assert execute(application.app, [*words, "-f", "table"]) == execute(
        application.app, [*words, "-f", "text"]
    )
    shown = capsys.readouterr()
    assert "usage" not in shown.err.lower() and "-f" not in shown.err
    assert execute(application.app, [*words, "-f", "tables"]) == ExitCode.USAGE
    assert "json" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [24, 40, 200])
def test_a_table_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    head = tuple(f"column-{number}" for number in range(6))
    print_table(head, [("value",) * 6, ("[red]markup[/]",) * 6], title="t")
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns for line in lines)
    assert lines[1].split() == list(head) if columns == 200 else lines[1].startswith("column-0:"[:columns])


@pytest.mark.parametrize("columns", ["0", "10"])
def test_a_width_that_no_terminal_has_is_80(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, shown = typer.Typer(), []

    @app.command()
    def show() -> None:
        print_table(("a", "b"), [("x " * 30, "y " * 30)])
        print_fields([("name", "word " * 30)])
        new_console().print("line")

    for width in (columns, "80"):
        monkeypatch.setenv("COLUMNS", width)
        assert execute(app, []) == execute(app, ["--help"]) == ExitCode.DONE
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and max(map(len, shown[0].splitlines())) <= 80


@pytest.mark.parametrize("value", [f"https://example.com/{'path-' * 20}", f"/home/me/{'x' * 90}.json"])
def test_urls_and_paths_are_not_broken(
    value: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_fields([("name", f"at {value}, as known\nmore")])
    print_table(("a", "b"), [(value, "x")])
    words = capsys.readouterr().out.split()
    assert words == ["name", "at", f"{value},", "as", "known", "more", "a:", value, "b:", "x"]


def test_a_file_gets_one_line_per_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(("a", "b"), [("x" * 300, "y")])
    assert capsys.readouterr().out.splitlines()[1] == f"{'x' * 300}  y"


def test_output_of_help_is_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(application.app, ["--help"]) == ExitCode.DONE
    text = capsys.readouterr().out
    assert [text.index(f" {panel} ") for panel in application.GROUPS] == sorted(
        text.index(f" {panel} ") for panel in application.GROUPS
    )
    assert execute(application.app, ["up", "--help"]) == ExitCode.DONE
    assert "0 done, 1" in " ".join(capsys.readouterr().out.split())


def test_no_name_of_an_option_is_cut_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for arguments, name in (("run", "--max-hours"), ("advise own", "--cloud-usd-per-gpu-hour <float>")):
        assert execute(application.app, [*arguments.split(), "-h"]) == ExitCode.DONE
        assert name in capsys.readouterr().out


@pytest.mark.parametrize("group", application.GROUPS)
def test_the_help_of_every_command_lists_its_exit_codes(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in application.GROUPS[group]:
        assert execute(application.app, [name, "--help"]) == ExitCode.DONE
        text = capsys.readouterr().out
        assert "Exit codes: 0 " in text and "[[" not in text


@pytest.mark.parametrize("arguments", [("smoke",), ("smoke", "rnu"), ("smoke", "--rnu")])
def test_a_usage_error_of_smoke_is_not_the_code_of_inconclusive(arguments: tuple[str, ...]) -> None:
    assert execute(application.app, arguments) == 3


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(application.app, ["--version"]) == ExitCode.DONE
    assert capsys.readouterr().out == f"trainstack {metadata.version('trainstack')}\n"


@pytest.mark.parametrize("command", ["runs", "explain", "rehearse login"])
@pytest.mark.parametrize(("stack", "fix"), [("dev-asw", "`dev-aws`"), ("", "dev-aws, dev-gcp")])
def test_a_stack_without_a_file_gets_a_near_name(
    command: str, stack: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rehearsed = ["--rehearse"] if command == "runs" else []
    arguments = [*command.split(), "-s", stack, *rehearsed]
    assert execute(application.app, arguments) == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert "[stack-file-missing]" in shown and fix in shown and "stacks/config" in shown


def test_an_option_of_rehearsals_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["preview", "-s", "dev-aws", "--provider", "real", "--format", "json"]
    assert execute(application.app, arguments) == ExitCode.USAGE
    (row,) = checked(capsys.readouterr().out)["problems"]
    assert (row["code"], row["path"], row["value"]) == ("option-needs-rehearse", "--provider", "real")


def test_an_internal_error_of_a_validation_is_no_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    monkeypatch.setattr(execution, "STATE", tmp_path)
    monkeypatch.setattr(cli.judge, "main", lambda _chosen: 1 // 0)
    assert execute(application.app, ["smoke", "judge", "samples"]) == EXIT_CODES[Verdict.ERROR]
