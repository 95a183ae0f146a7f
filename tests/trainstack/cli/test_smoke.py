"""`trainstack smoke`: the same command line as in the cluster, and quick to ask."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infra.launchers import runplan
from smoke_training.cli import COMMANDS
from tests.infra.launchers import plans
from tests.smoke_training import results, samples
from tests.smoke_training.cli.test_judge import recorded
from tests.smoke_training.foreign.test_outputs import OUTPUTS
from tests.trainstack.cli.command import run_json
from trainstack import accept, references, render
from trainstack.cli import smoke
from trainstack.cli.app import app

RUN = CliRunner()


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    done = RUN.invoke(app, ["smoke", "--help"])
    assert done.exit_code == 0
    for word in (*smoke.COMMANDS, "4 SKIPPED"):
        assert word in done.output


def test_every_command_is_one_of_the_programs_own() -> None:
    own = {command.NAME for command in (*COMMANDS, render, accept, references)}
    inside = {"node", "announce"}
    assert set(smoke.COMMANDS) == own - inside, "these are for containers of a cluster or a service"


def test_options_and_help_are_the_programs_own(capsys: pytest.CaptureFixture[str]) -> None:
    done = RUN.invoke(app, ["smoke", "run", "--help"])
    assert done.exit_code == 0
    assert "usage: trainstack smoke run" in done.output and "--only" in done.output


def test_the_exit_code_is_the_verdicts(tmp_path: Path) -> None:
    assert RUN.invoke(app, ["smoke", "judge", str(tmp_path / "none.jsonl")]).exit_code == 3
    assert RUN.invoke(app, ["smoke", "run", "--ranks", "0", "--out", "x.json"]).exit_code == 3
    assert RUN.invoke(app, ["smoke", "run", "--ranks", "2"]).exit_code == 3, "2 would mean INCONCLUSIVE"
    assert RUN.invoke(app, ["smoke", "plan", "--ranks", "2"]).exit_code == 0


def test_a_file_of_another_kind_is_one_problem() -> None:
    done = RUN.invoke(app, ["smoke", "judge", __file__])
    assert (done.exit_code, len(done.stderr.splitlines())) == (3, 2) and __file__ in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("judge", "{samples}"), 0),
        (("judge", "--nccl-tests", "{output}", "--machine", "p5.48xlarge", "--nodes", "2"), 0),
        (("judge", "--nccl-tests", "{output}", "--nodes", "2"), 2),
        (("accept", "{result}", "--because", "iperf3 fills both wires", "--by", "ada"), 0),
        (("references", "--machine", "hgx-h100"), 0),
        (("references",), 0),
        (("judge", "{here}/absent.jsonl"), 3),
        (("judge", "{samples}", "--machine", "hgx-h100"), 3),
        (("accept", "{result}", "--because", " "), 3),
        (("references", "--machine", "hgx-h10"), 3),
    ],
)
def test_results_and_refusals_are_json_of_a_published_schema(
    words: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    lines, output = [samples.LIVENESS, *samples.lines()], next(OUTPUTS.glob("01-*.txt"))
    given = {"here": tmp_path, "output": output, "samples": recorded(tmp_path, lines)}
    given["result"] = results.written(tmp_path, results.passed())
    found, document = run_json("smoke", *(word.format(**given) for word in words))
    assert found == code
    if code == 3:
        assert document["exit_code"] == 3 and document["problems"][0]["rule"]
    elif words[0] == "judge":
        assert document["exit_code"] == code and document["checks"]


def test_commands_of_containers_are_not_listed() -> None:
    done = RUN.invoke(app, ["smoke", "judge", "x", "--format", "json"])
    assert done.exit_code == 3 and "announce" not in done.stderr


def test_a_run_plan_is_rendered_to_a_file(tmp_path: Path) -> None:
    plan, target = tmp_path / "run.json", tmp_path / "job.yaml"
    plan.write_text(runplan.render(plans.training()))
    arguments = ["smoke", "render", "--for", "jobset", "--run", str(plan), "--out", str(target)]
    assert RUN.invoke(app, arguments).exit_code == 0
    assert target.read_text().startswith("apiVersion: jobset.x-k8s.io/v1alpha2\n")


def test_asking_for_help_imports_neither_torch_nor_pulumi() -> None:
    code = (
        "import sys, json\n"
        "from typer.testing import CliRunner\n"
        "from trainstack.cli.app import app\n"
        "CliRunner().invoke(app, ['smoke', 'plan'])\n"
        "print(json.dumps([name for name in ('torch', 'pulumi', 'mlflow', 'numpy') if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_user_without_a_name_can_use_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert RUN.invoke(app, ["smoke", "plan", "--ranks", "2"]).exit_code == 0
