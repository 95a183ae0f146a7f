"""`run` and `judge` refuse what they cannot do before they begin."""

from pathlib import Path

import pytest

from smoke_training import cli


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("run", "--ranks", "1", "--out", "{here}"), "--out"),
        (("run", "--ranks", "1", "--out", "{here}/r.json", "--burn", "15m", "--only", "pairs"), "--only"),
        (("judge", "--nccl-tests", "{here}/absent", "--plan", "{here}/plan.json"), "--plan"),
        (("judge", "--nccl-tests", "{here}/absent", "--against", "{here}/b.log"), "--against"),
        (("judge", "--step-log", "{here}/absent", "--machine", "p5.48xlarge"), "--machine"),
        (("judge", "--step-log", "{here}/absent", "--nodes", "2"), "--nodes"),
        (("judge", "{here}/absent.jsonl", "--machine", "p5.48xlarge", "--fabric", "efa"), "--fabric"),
        (("judge", "{here}/absent.jsonl", "--against", "{here}/b.log"), "--against"),
    ],
)
def test_options_that_do_not_fit_end_before_a_run(
    words: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([word.format(here=tmp_path) for word in words]) == 3
    assert named in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--burn", "15"), "15s or 15m"), (("--burn", "0s"), "15m"), (("--burn", "24h"), "up to 23h"),
        (("--burn", "m"), "its unit"), (("--only", "burn"), "'burn'"),
    ],
)  # fmt: skip
def test_a_time_without_its_unit_is_a_usage_error(
    words: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["run", "--ranks", "1", "--out", str(tmp_path / "r.json")], ["plan"]):
        with pytest.raises(SystemExit) as left:
            cli.main([*command, *words])
        assert left.value.code == 3
        assert named in capsys.readouterr().err
    assert cli.main(["plan", "--burn", "2m"]) == 0
    assert "120 s" in capsys.readouterr().out
