"""Dependencies of rendered pipelines: locked by hash, and installed in no other way."""

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.test_structure import ROOT
from tests.trainstack.stamp.test_pipelines import ACTION, CI, PAIRS, parsed, texts

LOCK = "locks/trainstack.lock"
_ROW = re.compile(
    r"^(?P<name>[a-z0-9.-]+)==(?P<version>\S+) \\\n(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.M,
)


def rows(lock: str) -> dict[str, str]:
    """Versions by package; every line of the lock belongs to one with its hashes."""
    assert [line for line in _ROW.sub("", lock).splitlines() if not line.startswith("#")] == []
    return {found["name"]: found["version"] for found in _ROW.finditer(lock)}


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_dependency_of_this_version_is_locked_by_hash(pair: tuple[str, str]) -> None:
    locked = rows(texts(*pair)[LOCK])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        Requirement(one) for one in project["project"]["dependencies"] + project["build-system"]["requires"]
    ]
    assert [
        str(one) for one in wanted if locked.get(one.name.replace(".", "-"), "0") not in one.specifier
    ] == []
    tested = rows((ROOT / "requirements.lock").read_text())
    assert {name for name in locked if name in tested and tested[name] != locked[name]} <= {"setuptools"}
    assert ("locks/awscli.lock" in texts(*pair)) is (pair == ("medium", "aws"))


def scripts(pair: tuple[str, str]) -> Mapping[str, str]:
    """The commands that install the package, by pipeline."""
    (github,) = (
        step["run"] for step in parsed(texts(*pair)[ACTION])["runs"]["steps"] if "pip" in step.get("run", "")
    )
    return {"github": github, "gitlab": parsed(texts(*pair)[CI])[".trainstack"]["before_script"][0]}


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_no_pipeline_installs_without_hashes(pair: tuple[str, str]) -> None:
    for file in (ACTION, CI):
        text = texts(*pair)[file].replace("\\\n", " ")
        for line in (line for line in text.splitlines() if re.search(r"pip\"? install", line)):
            assert "--require-hashes" in line or ("--no-deps" in line and "$hashes" in line), line


def wheel(folder: Path, name: str, *needs: str) -> Path:
    """A wheel with a module and nothing else."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(
        f"Requires-Dist: {one}\n" for one in needs
    )
    files: dict[str, Any] = {
        f"{name}.py": "", f"{name}-1.0.dist-info/METADATA": head, f"{name}-1.0.dist-info/RECORD": "",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Machine:
    """A machine of a pipeline, with an index that is a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = wheel(folder, "trainstack", "needed==1.0")
        needed = wheel(folder, "needed")
        (folder / "locks").mkdir()
        (folder / LOCK).write_text(f"needed==1.0 \\\n    --hash=sha256:{sha256(needed)}\n")

    def install(self, script: str, package: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PACKAGE": package,
            "TRAINSTACK_PACKAGE": package, "RUNNER_TEMP": str(self.folder), "GITHUB_PATH": os.devnull,
            "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder), "PIP_NO_CACHE_DIR": "1",
        }  # fmt: skip
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script.replace("/opt/", f"{self.folder}/")],
            cwd=self.folder, env=variables, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.mark.parametrize("pipeline", ["github", "gitlab"])
def test_the_package_is_installed_by_its_digest_alone(pipeline: str, tmp_path: Path) -> None:
    machine, script = Machine(tmp_path), scripts(("small", "aws"))[pipeline]
    address = f"trainstack @ {machine.package.as_uri()}"
    for package in ("trainstack @ git+https://h/t.git@v1", "trainstack @ git+https://h/t.git@main"):
        assert machine.install(script, package).returncode == 1
    assert not (tmp_path / "trainstack").exists(), "refused before anything is installed"
    done = machine.install(script, f"{address}#sha256={sha256(machine.package)}")
    assert done.returncode == 0, done.stderr
    for package in (address, f"{address}#sha256={'0' * 64}"):
        assert machine.install(script, package).returncode == 1


def test_a_package_that_needs_more_than_the_lock_ends_the_job(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    package = wheel(tmp_path, "trainstack", "needed==2.0")
    given = f"trainstack @ {package.as_uri()}#sha256={sha256(package)}"
    done = machine.install(scripts(("small", "aws"))["github"], given)
    assert done.returncode == 1 and "needed" in done.stdout
