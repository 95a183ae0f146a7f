"""Files of a rehearsed project, which commands of several stacks write at the same time."""

from pathlib import Path

from rehearsal.projects import stack_file


def test_a_draft_of_another_command_stays(tmp_path: Path) -> None:
    draft = tmp_path / "Pulumi.tmp"
    draft.write_text("of another")
    stack_file.write(tmp_path / "Pulumi.yaml", {"name": "own"})
    assert stack_file.load(tmp_path / "Pulumi.yaml") == {"name": "own"}
    assert draft.read_text() == "of another" and len([*tmp_path.iterdir()]) == 2
