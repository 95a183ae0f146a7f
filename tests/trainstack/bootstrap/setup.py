"""Output of `trainstack bootstrap` for shipped stacks in the folder of a client."""

import shutil
from pathlib import Path

from typer.testing import CliRunner

from infra.errors import UserError
from infra.stackspec.load import CONFIG
from trainstack.cli.app import app

ROLE = "arn:aws:iam::111122223333:role/deployment"
AGENCY = ("--agency-role", ROLE, "--external-id", "acme-2041-77")
GITHUB = ("--github", "acme/stacks")
GITHUB_IDS = ("--github", "acme@123/stacks@456")
GITLAB = ("--gitlab", "acme/ml/stacks", "--branch", "main")


def folder(tmp_path: Path, *stacks: str, change: tuple[str, str] = ("", "")) -> Path:
    """A client's folder, in whose stack files one text is another."""
    made = tmp_path / "acme"
    made.mkdir(parents=True, exist_ok=True)
    (made / "Pulumi.yaml").write_text("name: acme\nruntime: python\n")
    for stack in stacks:
        file = Path(shutil.copy(CONFIG / f"Pulumi.{stack}.yaml", made))
        file.write_text(file.read_text().replace(*change) if change[0] else file.read_text())
    return made


def printed(made: Path, *words: str) -> str:
    """The file alone; notes are on the other stream. User errors are raised."""
    done = CliRunner().invoke(app, ["bootstrap", str(made), *words])
    if isinstance(done.exception, UserError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return str(done.stdout)
