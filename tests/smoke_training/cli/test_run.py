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
    ],
)
def test_options_that_do_not_fit_end_before_a_run(
    words: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([word.format(here=tmp_path) for word in words]) == 3
    assert named in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
