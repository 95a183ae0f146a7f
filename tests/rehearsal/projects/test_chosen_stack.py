"""The stack of a project whose preview is judged or priced."""

from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.client import Rehearsal
from tests.trainstack.cli.command import run as trainstack

PROGRAM = "import pulumi\npulumi.export('size', pulumi.Config().require_int('size'))\n"


def test_an_audit_and_a_preview_take_the_stack_of_a_project(rehearsal: Rehearsal, tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: asks\nruntime: python\n")
    (folder / "__main__.py").write_text(PROGRAM)
    for stack, size in (("prod", "3"), ("test", "many")):
        (folder / f"Pulumi.{stack}.yaml").write_text(f"config:\n  asks:size: '{size}'\n")
    for command in (("preview", "--project"), ("audit", "--allow-empty", "--preview")):
        with pytest.raises(UserError) as refused:
            trainstack(*command, str(folder))
        assert refused.value.codes == (("project-has-several-stacks", "--stack"),)
        assert trainstack(*command, str(folder), "--stack", "prod")[0] == 0


def test_the_stack_of_a_file_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"steps": []}')
    with pytest.raises(UserError) as refused:
        trainstack("audit", "--preview", str(tmp_path / "plan.json"), "--stack", "prod")
    assert refused.value.codes == (("option-conflict", "--stack"),)
