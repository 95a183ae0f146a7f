import base64
import hashlib
import io
import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from infra.launchers.bundle import MAX_BYTES, SOURCES, BundleError, bundle, of_jobs, shipped


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "workload"
    (folder / "probes").mkdir(parents=True)
    (folder / "__init__.py").write_text("NAME = 'workload'\n")
    (folder / "__main__.py").write_text("from workload import NAME\nprint('hello from', NAME)\n")
    (folder / "probes" / "__init__.py").write_text("")
    (folder / "schema.json").write_text("{}")
    return folder


def names(content: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(content)).namelist()


def test_the_zip_runs_by_itself(package: Path, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(bundle(package).content)
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path.root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "hello from workload\n"


def test_entries_are_sorted_sources_and_data_only(package: Path) -> None:
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"cache")
    (package / "notes.swp").write_text("editor")
    assert names(bundle(package).content) == [
        "__main__.py",
        "workload-0.dist-info/METADATA",
        "workload-0.dist-info/entry_points.txt",
        "workload/__init__.py",
        "workload/__main__.py",
        "workload/probes/__init__.py",
        "workload/schema.json",
    ]


def test_times_and_modes_of_the_files_do_not_matter(package: Path) -> None:
    before = bundle(package)
    for path in package.rglob("*.py"):
        os.utime(path, (1, 1))
        path.chmod(0o755)
    (package / "__pycache__").mkdir()
    assert bundle(package).content == before.content


def test_the_digest_is_of_the_zip_and_changes_with_any_source(package: Path) -> None:
    before = bundle(package)
    assert before.sha256 == hashlib.sha256(before.content).hexdigest()
    assert base64.b64decode(before.base64) == before.content
    (package / "schema.json").write_text("{ }")
    assert bundle(package).sha256 != before.sha256


def test_what_fits_no_config_map_is_refused(package: Path) -> None:
    noise = random.Random(1).randbytes(MAX_BYTES)
    (package / "weights.txt").write_bytes(noise)
    with pytest.raises(BundleError, match="ConfigMap"):
        bundle(package)


def test_a_folder_that_cannot_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"__main__\.py"):
        bundle(tmp_path)


def test_the_workload_itself_fits_and_brings_its_package() -> None:
    made = bundle()
    entries = names(made.content)
    assert {"__main__.py", "smoke_training/__init__.py", "smoke_training/__main__.py"} <= set(entries)
    sources = {path.relative_to(SOURCES.parent).as_posix() for path in SOURCES.rglob("*.py")}
    assert sources <= set(entries)


def test_only_the_zip_of_jobs_has_the_program_around_scripts_and_not_on_their_path() -> None:
    added = set(names(of_jobs().content)) - set(names(shipped().content))
    assert "programs/agents/managed_job/run.py" in added
    assert {name.split("/")[0] for name in added} == {"programs"}
