"""The programs of examples/components are built and run in a rehearsal, each in its language."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.engine import install, languages
from rehearsal.client import Rehearsal
from tests.test_structure import ROOT

EXAMPLES = ROOT / "examples" / "components"
TOOLS = {"typescript": "npm", "go": "go", "python": "python3"}
pytestmark = [pytest.mark.more, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of the engine whose state is in it, where packages are added."""
    if not languages.ready() and install.require().origin == "source":
        pytest.skip("language hosts are not built: make binaries")
    return tmp_path_factory.mktemp("pulumi")


@pytest.mark.parametrize("language", TOOLS)
def test_a_program_is_created_unchanged_and_deleted(
    rehearsal: Rehearsal, home: Path, tmp_path: Path, language: str
) -> None:
    if shutil.which(TOOLS[language]) is None:
        pytest.skip(f"{TOOLS[language]} is not installed")
    program = tmp_path / language
    left_out = shutil.ignore_patterns("sdks", "node_modules", "go.sum", "package-lock.json")
    shutil.copytree(EXAMPLES / language, program, ignore=left_out)
    manifest = program / "Pulumi.yaml"
    manifest.write_text(manifest.read_text().replace("../../../plugin", str(ROOT / "plugin")))
    cli = install.require().path
    path = os.pathsep.join([str(Path(cli).parent), os.environ.get("PATH", "")])
    variables = {**os.environ, "PULUMI_HOME": str(home), "PULUMI_BACKEND_URL": home.as_uri(), "PATH": path}
    added = subprocess.run(
        [cli, "package", "add", str(ROOT / "plugin")],
        cwd=program, env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "EAI_AGAIN" in added.stderr or "dial tcp" in added.stderr:
        pytest.skip("packages of the language cannot be downloaded")
    assert added.returncode == 0, added.stdout + added.stderr
    if language == "typescript":
        types = subprocess.run(
            ["npx", "tsc", "--noEmit"], cwd=program, capture_output=True, text=True, check=False
        )
        assert types.returncode == 0, types.stdout
    done = subprocess.run(
        [Path(sys.executable).with_name("trainstack"), "rehearse", "run", program],
        env={**os.environ, "TRAINSTACK_REHEARSAL_HOME": str(rehearsal.home)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passes" in done.stdout
