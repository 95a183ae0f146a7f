"""A Pulumi CLI is used, installed or built, in that order, and a missing one is explained."""

import json
import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from infra.engine import golang, install

HELPERS = ("pulumi-language-python", "pulumi-resource-pulumi-python")


def fake_cli(folder: Path, version: str, *, without: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    cli = folder / "pulumi"
    cli.write_text(f"#!/bin/sh\necho {version}\n")
    cli.chmod(0o755)
    for name in HELPERS:
        if name != without:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    return cli


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine is found or written."""
    monkeypatch.setattr(install, "HOME", tmp_path / "home")
    monkeypatch.setattr(install, "_RECORD", tmp_path / "home" / "engine.json")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")


def test_one_on_path_is_used_and_remembered(tmp_path: Path) -> None:
    cli = fake_cli(tmp_path / "path", "v3.260.1")
    found = install.find()
    assert found == install.Cli(str(cli), "3.260.1", "path")
    assert install.current() == found


def test_the_oldest_that_is_new_enough_is_used(tmp_path: Path) -> None:
    fake_cli(tmp_path / "path", "v3.249.0")
    assert install.find() is not None


@pytest.mark.parametrize(
    ("version", "without"),
    [("v3.248.9", None), ("not a version", None), *(("v3.260.1", name) for name in HELPERS)],
)
def test_one_that_cannot_run_our_program_is_passed_over(
    tmp_path: Path, version: str, without: str | None
) -> None:
    fake_cli(tmp_path / "path", version, without=without)
    assert install.find() is None


def test_what_was_built_before_is_found_again_after_an_interrupt(tmp_path: Path) -> None:
    cli = fake_cli(tmp_path / "home" / "bin", "v3.259.0")
    found = install.find()
    assert found is not None and (found.path, found.origin) == (str(cli), "source")


def test_a_choice_whose_cli_is_gone_or_whose_record_is_broken_is_forgotten(tmp_path: Path) -> None:
    install.choose(install.Cli(str(tmp_path / "gone"), "3.260.0", "path"))
    assert install.current() is None
    (tmp_path / "home" / "engine.json").write_text("{ half")
    assert install.current() is None
    with pytest.raises(golang.SetupError, match="no Pulumi CLI"):
        install.require()


def test_an_installed_cli_is_linked_into_a_folder_of_path(tmp_path: Path) -> None:
    for version, folder in (("v3.259.0", "first"), ("v3.260.0", "second"), ("v3.260.0", "second")):
        cli = install.Cli(str(fake_cli(tmp_path / folder, version)), version, "source")
        install.link(cli, tmp_path)
        assert install.probe(tmp_path / "pulumi", "path") and (tmp_path / "pulumi").resolve() == Path(
            cli.path
        )


def test_without_go_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(golang.SetupError, match="Install Pulumi or Go"):
        install.build_from_source(Path("python3"), lambda _: None)


def test_a_build_that_fails_reports_the_compilers_words_and_leaves_no_cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\necho 'write /tmp/x: no space left on device' >&2\nexit 1\n")
    go.chmod(0o755)
    with pytest.raises(golang.SetupError, match="disk space"):
        install.build_from_source(Path("python3"), lambda _: None)
    assert not (tmp_path / "home" / "bin" / "pulumi").exists()
    assert not (tmp_path / "home" / "engine.json").exists()


def test_an_installer_that_fails_leaves_nothing_half_installed(tmp_path: Path) -> None:
    python = tmp_path / "python"
    half = tmp_path / "home" / "pulumi" / "bin"
    python.write_text(f"#!/bin/sh\nmkdir -p {half}\ntouch {half}/pulumi\nexit 1\n")
    python.chmod(0o755)
    said: list[str] = []
    assert install.install_official(python, said.append) is None
    assert not half.exists()
    assert install._INSTALLER in said[-1]


def test_the_record_is_readable(tmp_path: Path) -> None:
    fake_cli(tmp_path / "path", "v3.260.1")
    install.find()
    assert json.loads((tmp_path / "home" / "engine.json").read_text())["origin"] == "path"


def test_a_build_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    go.chmod(0o755)

    def build() -> None:
        with pytest.raises(golang.SetupError):
            install.build_from_source(Path("python3"), lambda _: None)

    thread = threading.Thread(target=build)
    thread.start()
    deadline = time.monotonic() + 10
    while not golang._BUILDS and time.monotonic() < deadline:
        time.sleep(0.01)
    group = next(iter(golang._BUILDS)).pid
    golang.stop_building()
    thread.join(10)
    assert not thread.is_alive()
    assert [process for process in psutil.process_iter(["status"]) if in_group(process, group)] == []


def in_group(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE
    except ProcessLookupError:
        return False
