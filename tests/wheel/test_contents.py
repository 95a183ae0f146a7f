"""The wheel has every file of the packages and nothing else, and needs no package of a rehearsed gate."""

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.test_structure import LAYERS, ROOT, tracked
from tests.wheel.built import build, files
from trainstack.extras import REHEARSE

# Removes what only Linux has, and packages of the extra, then imports every module that no rehearsal needs.
_IMPORT_ALL = """
import importlib, os, pkgutil, signal, socket, sys
for module, name in ((os, "sched_getaffinity"), (os, "pidfd_open"), (os, "memfd_create"),
                     (signal, "pidfd_send_signal"), (socket, "SO_PEERCRED")):
    delattr(module, name)
for name in sys.argv[1].split(","):
    sys.modules[name] = None
found = [one.name for top in sys.argv[2].split(",")
         for one in pkgutil.walk_packages(importlib.import_module(top).__path__, f"{top}.")]
for name in found:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(found))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if not tracked():
        pytest.skip("not a git checkout")
    return zipfile.ZipFile(build(tmp_path_factory.mktemp("wheel")))


def test_every_file_of_the_packages_is_in_it_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name and ".data/" not in name}
    assert len(names) > 1000
    assert names == set(files())
    for name in names:
        assert wheel.read(name) == (ROOT / name).read_bytes()


def test_pages_that_messages_name_are_in_it(wheel: zipfile.ZipFile) -> None:
    start = "/data/share/doc/trainstack/"
    pages = {name.partition(start)[2]: name for name in wheel.namelist() if start in name}
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "docs/*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    # Decisions and the pages about the repository stay there.
    left_out = ("docs/adr/", "docs/README.md", "docs/architecture.md", "docs/tutorials/audit/")
    assert set(pages) == {name for name in listed if not name.startswith(left_out)}
    for page, name in pages.items():
        assert wheel.read(name) == (ROOT / page).read_bytes()


def test_it_has_the_packages_of_the_checkout_its_command_and_its_plugin(wheel: zipfile.ZipFile) -> None:
    (entry,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    (tops,) = (name for name in wheel.namelist() if name.endswith("/top_level.txt"))
    assert set(wheel.read(tops).decode().split()) == set(LAYERS)
    assert wheel.read(entry).decode().split() == [
        "[console_scripts]",
        "pulumi-resource-trainstack",
        "=",
        "trainstack.component_plugin:main",
        "trainstack",
        "=",
        "trainstack.cli:main",
    ]


def test_only_the_extra_needs_what_a_validation_runs(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    wanted = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    light = {one.name for one in wanted if one.marker is None}
    rehearse = {
        one.name for one in wanted if one.marker and one.marker.evaluate({"extra": "rehearse"})
    } - light
    assert set(REHEARSE) <= rehearse and not rehearse & light
    assert {"pip", "pulumi", "pulumi-aws", "pulumi-gcp", "pulumi-kubernetes", "typer"} <= light
    supported = SpecifierSet(metadata["Requires-Python"])
    answers = {one: f"3.{one}" in supported for one in (10, 11, 12, 13, 14)}
    assert answers == {10: False, 11: True, 12: True, 13: True, 14: False}


def test_commands_without_rehearsals_import_neither_the_extra_nor_what_only_linux_has(tmp_path: Path) -> None:
    tops = ",".join(one for one in LAYERS if one not in ("rehearsal", "smoke_training", "agents"))
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL, ",".join((*REHEARSE, "numpy")), tops],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 500
