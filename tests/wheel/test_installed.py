"""A life in a client's folder: the wheel in a fresh environment, with an empty home and without the checkout.

Dependencies come from the cache of uv, which set-up filled, else from the index that uv is set to.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.test_structure import LAYERS, ROOT, tracked
from tests.wheel.built import build

pytestmark = [pytest.mark.more, pytest.mark.timeout(1200)]
LIGHT_MIB = 400
_PIP_LIST = ("-m", "pip", "list", "--format", "json")
STACK = "demo-dev"
SHADOW = "raise SystemExit('a package of the client was imported')\n"
# The names of the product, and of what the program imports: none may come from the client's folder.
HOSTILE = (*(one for one in LAYERS if one != "trainstack"), "pulumi", "yaml", "pydantic")


class Installation:
    """The wheel in an environment of its own, in a folder with an empty home."""

    def __init__(self, folder: Path, wheel: Path, extra: str) -> None:
        self.home, self.environment = folder / "home", folder / "environment"
        self.home.mkdir()
        cache = subprocess.check_output([_uv(), "cache", "dir"], text=True).strip()
        self._uv = {**os.environ, "HOME": str(self.home), "UV_CACHE_DIR": cache}
        self._uv.pop("PYTHONPATH", None)
        _checked([_uv(), "venv", "--quiet", "--python", sys.executable, str(self.environment)], env=self._uv)
        python = self.environment / "bin" / "python"
        wanted = f"trainstack[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        constraints = ["--constraint", str(ROOT / "requirements.lock"), "--python", str(python), wanted]
        install = [_uv(), "pip", "install", "--quiet", *constraints]
        offline = subprocess.run([*install, "--offline"], env=self._uv, capture_output=True, check=False)
        if offline.returncode:
            _checked(install, env=self._uv)

    @property
    def variables(self) -> dict[str, str]:
        """Of a user: the Pulumi CLI of the checkout stands for one that is installed on the machine."""
        folders = (self.environment / "bin", ROOT / ".trainstack" / "bin", "/usr/bin", "/bin")
        path = os.pathsep.join(map(str, folders))
        return {"HOME": str(self.home), "PATH": path, "PYTHONPATH": ".", "LANG": "C.UTF-8"}

    @property
    def mebibytes(self) -> float:
        """Size of its files, in the unit of `uv` and `du -h`."""
        files = (path for path in self.environment.rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files) / 2**20

    def run(self, folder: Path, *words: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
        """Run a command; return its output, of both streams."""
        done = subprocess.run(
            words, cwd=folder, env=env or self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        assert "Traceback" not in done.stdout
        return done.stdout


def _uv() -> str:
    return str(Path(sys.executable).parent / "uv")


def _checked(command: list[str], env: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not tracked() or not (ROOT / ".trainstack" / "bin" / "pulumi").exists():
        pytest.skip("needs a git checkout with a Pulumi CLI that set-up built")
    return build(tmp_path_factory.mktemp("wheel"))


def client(installed: Installation, folder: Path, *options: str) -> Path:
    """A client's folder with packages of the names that ours have."""
    installed.run(folder, "trainstack", "new", "demo", "--yes", *options)
    for name in HOSTILE:
        package = folder / "demo" / name
        package.mkdir(exist_ok=True)  # `policies` has settings and waivers of the client
        (package / "__init__.py").write_text(SHADOW)
    return folder / "demo"


def native(installed: Installation, folder: Path) -> dict[str, str]:
    """The environment of plain Pulumi commands, as `eval` of `rehearse env` makes it in a shell."""
    script = f'eval "$(trainstack rehearse env -s {STACK} 2>/dev/null)" && exec python -P -c "$1"'
    show = "import json, os; print(json.dumps({**os.environ}))"
    found: dict[str, str] = json.loads(installed.run(folder, "sh", "-c", script, "sh", show))
    return found


def test_the_light_installation_previews_and_names_the_missing_extra(wheel: Path, tmp_path: Path) -> None:
    installed = Installation(tmp_path, wheel, extra="")
    assert installed.mebibytes < LIGHT_MIB
    shadowing = {
        path.name.removesuffix(".py")
        for folder in installed.environment.glob("lib/python*/site-packages")
        for path in folder.iterdir()
    }
    assert shadowing & sys.stdlib_module_names == set(), "the packages come first on the path of programs"
    # Pulumi's own host of Python programs asks for this list before it runs one (toolchain/pip.go).
    listing = installed.run(tmp_path, str(installed.environment / "bin/python"), *_PIP_LIST)
    assert {"pulumi", "pulumi_aws"} <= {row["name"].lower().replace("-", "_") for row in json.loads(listing)}
    assert "[no-folder-of-stacks]" in installed.run(tmp_path, "trainstack", "explain", code=2)
    folder = client(installed, tmp_path)
    document = json.loads(installed.run(folder, "trainstack", "explain", "budget", "-f", "json", "-s", STACK))
    assert document["stack"] == STACK
    assert "extra-missing" in installed.run(
        folder, "trainstack", "up", "-s", STACK, "--rehearse", "--yes", code=2
    )
    text = installed.run(
        folder, "trainstack", "preview", "-s", STACK, "--rehearse", "--cluster", "real", code=1
    )
    assert "[setup-incomplete]" in text
    shutil.rmtree(folder / ".trainstack")
    installed.run(folder, "trainstack", "explain", "budget", "-s", STACK)
    assert not (folder / ".trainstack").exists(), "a command that only reads needs no folder to write to"
    page = installed.environment / "share/doc/trainstack/docs/reference/policies.md"
    shown = installed.run(folder, "trainstack", "audit", "--help")
    assert page.is_file() and str(page) in "".join(shown.split()), "help is folded at hyphens"
    installed.run(folder, "trainstack", "preview", "-s", STACK, "--rehearse")
    environment = native(installed, folder)
    assert " to create" in installed.run(folder, "pulumi", "preview", env=environment)
    packs = ("--policy-pack", ".trainstack/policies")
    assert "trainstack@" in installed.run(folder, "pulumi", "preview", *packs, env=environment)
    # Nothing outside of the folder, but for the choice of the CLI.
    assert {path.name for path in installed.home.iterdir()} <= {".trainstack", ".pulumi"}


def test_a_stack_is_rehearsed_and_then_native_pulumi_has_nothing_to_change(
    wheel: Path, tmp_path: Path
) -> None:
    installed = Installation(tmp_path, wheel, extra="rehearse")
    folder = client(installed, tmp_path)
    installed.run(folder, "trainstack", "up", "-s", STACK, "--rehearse", "--yes")
    environment = native(installed, folder)
    installed.run(folder, "pulumi", "preview", "--expect-no-changes", env=environment)
    installed.run(folder, "trainstack", "destroy", "-s", STACK, "--rehearse", "--yes")
    installed.run(folder, "trainstack", "rehearse", "stop")
