"""A new file of services or rules is found without an entry in a list."""

from pathlib import Path

import pytest

from infra.discovery import gathered, modules


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / f"found_{tmp_path.name.replace('-', '_')}"
    (folder / "deeper").mkdir(parents=True)
    for name, text in {"__init__": "", "one": "HOOKS = {'a': 1}", "deeper/__init__": "", "other": ""}.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_modules_at_any_depth_are_found(package: Path) -> None:
    (package / "deeper" / "two.py").write_text("HOOKS = {'b': 2}")
    names = [module.__name__.removeprefix(f"{package.name}.") for module in modules(package.name)]
    assert names == ["deeper", "deeper.two", "one", "other"]
    assert gathered(package.name, "HOOKS") == {"a": 1, "b": 2}


def test_a_key_in_two_modules_is_an_error(package: Path) -> None:
    (package / "two.py").write_text("HOOKS = {'a': 3}")
    with pytest.raises(ValueError, match=r"two\.HOOKS: a "):
        gathered(package.name, "HOOKS")
