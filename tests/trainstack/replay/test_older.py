"""The installation that deployed a stack, found in its virtual environment."""

import sys
from pathlib import Path

import pytest

from infra.errors import UserError
from trainstack.replay.runs import older_installation


def test_the_packages_of_an_environment_are_found_whatever_the_path_of_this_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "places.py").write_text(f"PACKAGES = {str(tmp_path)!r}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = older_installation(Path(sys.prefix))
    assert found.prefix == Path(sys.prefix)
    assert found.packages != tmp_path and (found.packages / "stacks" / "__main__.py").is_file()


def test_an_environment_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        older_installation(tmp_path)
    assert refused.value.codes == (("no-older-installation", "--older"),)
