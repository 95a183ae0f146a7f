"""SDKs are added to programs in each language, and missing tools are named."""

import json
import shutil
from pathlib import Path

import pytest

from infra.engine import languages

SDK = "sdks/own"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / SDK).mkdir(parents=True)
    return tmp_path


def test_a_program_in_node_gets_the_sdk_as_a_folder(program: Path) -> None:
    (program / "package.json").write_text('{"name": "x", "dependencies": {"a": "1"}}')
    (program / SDK / "package.json").write_text('{"name": "@pulumi/own"}')
    assert "@pulumi/own" in languages.link("nodejs", program, [("own", SDK)])
    content = json.loads((program / "package.json").read_text())
    assert content["dependencies"] == {"a": "1", "@pulumi/own": f"file:{SDK}"}


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
def test_a_program_in_go_gets_the_sdk_in_place_of_a_module(program: Path) -> None:
    (program / "go.mod").write_text("module x\n\ngo 1.25\n")
    (program / SDK / "go.mod").write_text("module example.com/own/sdk/go\n\ngo 1.25\n")
    assert "example.com/own/sdk/go/own" in languages.link("go", program, [("own", SDK)])
    text = (program / "go.mod").read_text()
    assert f"replace example.com/own/sdk/go => ./{SDK}" in text


def test_a_program_in_python_names_the_sdk_once(program: Path) -> None:
    for _ in range(2):
        languages.link("python", program, [("own", SDK)])
    assert (program / "requirements.txt").read_text() == f"{SDK}\n"


def test_a_program_in_node_without_its_packages_is_refused(program: Path) -> None:
    with pytest.raises(languages.LanguageError, match="npm install"):
        languages.command("nodejs", program, {}, [])


def test_a_missing_tool_is_named(program: Path) -> None:
    with pytest.raises(languages.LanguageError, match="no-such-tool"):
        languages.run(["no-such-tool"], program)


def test_a_go_program_learns_its_settings_from_variables() -> None:
    names = ("organization", "project", "stack", "parallel", "monitor", "engine")
    found = languages.variables("go", {**dict.fromkeys(names, "v"), "dry-run": "true"})
    assert found == {**{f"PULUMI_{name.upper()}": "v" for name in names}, "PULUMI_DRY_RUN": "true"}
