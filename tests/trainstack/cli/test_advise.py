"""`trainstack advise` as people and programs call it."""

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from tests.trainstack.cli.command import run_json
from trainstack.cli.app import app

ASKED = ("advise", "--parameters", "7B", "--tokens", "500M", "--method", "lora")
OWN = (
    "advise", "own", "--price-usd", "300000", "--gpus", "8", "--kw", "10", "--usd-per-kwh", "0.15",
    "--cloud-usd-per-gpu-hour", "4", "--use", "0.8", "--skills",
)  # fmt: skip


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_answer_has_memory_machine_losers_profile_and_its_limit() -> None:
    kinds = [line.split(" ")[0] for line in said(*ASKED, "--people", "4").splitlines()]
    assert kinds[:2] == ["memory", "best"] and {"more", "excluded"} <= set(kinds)
    assert kinds[-2:] == ["profile", "An"], "the estimate is marked as untested"


def test_assumptions_are_shown_with_their_sources() -> None:
    assert "arXiv 1910.02054" in said(*ASKED, "--assumptions")
    assert "arXiv" not in said(*ASKED)


def test_programs_read_the_same() -> None:
    _, found = run_json(*ASKED, "--people", "30")
    assert (found["profile"], found["question"]["parameters"]) == ("large", 7e9)
    assert found["best"]["machine"]["name"] in said(*ASKED)
    assert all(row["source"] for row in found["assumptions"])


def test_buying_is_judged() -> None:
    _, found = run_json(*OWN)
    assert found["own"] and 0 < found["break_even_use"] < 1
    assert said(*OWN).split()[:2] == ["answer", "buy"]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("advise",), "--parameters"),
        (("advise", "--parameters", "seven", "--tokens", "1B"), "--parameters"),
        ((*ASKED, "--cloud", "azure"), "--cloud"),
        ((*ASKED, "--region", "mars-1"), "--region"),
        ((*ASKED, "--people", "0"), "--people"),
        ((*OWN, "--maintenance-share", "2"), "--maintenance-share"),
    ],
)
def test_bad_input_is_named(arguments: tuple[str, ...], path: str) -> None:
    with pytest.raises(UserError) as refused:
        said(*arguments)
    assert path in [problem.path for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("option", "value", "near"),
    [("--region", "us-eas-1", "us-east-1"), ("--method", "lra", "lora"), ("--cloud", "awss", "aws")],
)
def test_a_misspelled_choice_gets_the_nearest_one(option: str, value: str, near: str) -> None:
    with pytest.raises(UserError) as refused:
        said(*ASKED, option, value)
    (problem,) = refused.value.problems
    assert problem.path == option and f"`{near}`" in problem.fix


def test_both_missing_figures_are_reported_as_missing() -> None:
    with pytest.raises(UserError) as refused:
        said("advise")
    code = "required-option-missing"
    assert refused.value.codes == ((code, "--parameters"), (code, "--tokens"))
