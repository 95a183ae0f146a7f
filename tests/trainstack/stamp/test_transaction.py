"""Changes of several files: all or none, also where the process is killed at any of its steps."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from trainstack.stamp import lock, transaction

BEFORE = {"Pulumi.yaml": "a: 1\n", "old/gone.txt": "x\n", "keep.txt": "k\n"}
CHANGES = {
    "Pulumi.yaml": "a: 2\n",
    "old/gone.txt": None,
    ".github/workflows/up.yml": "on: push\n",
    lock.LOCK: "format: 1\n",
}
AFTER = {**{name: text for name, text in {**BEFORE, **CHANGES}.items() if text is not None}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in BEFORE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def found(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def codes(folder: Path) -> set[str]:
    with pytest.raises(UserError) as refused:
        transaction.recover(folder)
    return {one.code for one in refused.value.problems}


def killed(folder: Path, step: int) -> bool:
    """Make the changes in a process that is killed at a step; whether it was."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = step

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*words: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*words, **more)

        return called

    try:
        for name in ("replace", "unlink", "mkdir", "open", "rmdir"):
            setattr(Path, name, counted(getattr(Path, name)))
        transaction.apply(folder, BEFORE, CHANGES)
    finally:
        os._exit(0)


def test_all_changes_are_made_and_nothing_else_stays(folder: Path) -> None:
    transaction.apply(folder, BEFORE, CHANGES)
    assert found(folder) == AFTER
    assert not (folder / "old").exists()


def test_a_kill_at_any_step_leaves_all_files_or_a_change_that_is_finished(tmp_path: Path) -> None:
    states = []
    for step in range(100):
        folder = tmp_path / str(step)
        for name, text in BEFORE.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        ended = not killed(folder, step)
        decided = transaction.interrupted(folder)
        transaction.recover(folder)
        assert found(folder) in ([AFTER] if decided or ended else [BEFORE, AFTER])
        states.append("ended" if ended else "decided" if decided else found(folder) == AFTER)
        if ended:
            break
    assert states[0] is False
    assert states[-1] == "ended"
    assert states.count("decided") > len(CHANGES)


def test_an_edit_after_a_kill_is_not_lost(folder: Path) -> None:
    step = next(one for one in range(100) if killed(folder, one) and transaction.interrupted(folder))
    assert step
    (folder / "Pulumi.yaml").write_text("a: 3\n")
    assert codes(folder) == {"client-file-changed"}
    assert found(folder)["Pulumi.yaml"] == "a: 3\n"


def test_a_journal_that_leads_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / transaction.STAGE).mkdir(parents=True)
    (folder / transaction.STAGE / "0").write_text("evil\n")
    (folder / transaction.JOURNAL).write_text('{"../evil": {"before": null, "file": "0"}}')
    assert codes(folder) == {"client-journal-invalid"}
    assert not (folder.parent / "evil").exists()


def test_a_file_that_changed_meanwhile_stops_the_change(folder: Path) -> None:
    (folder / "keep.txt").write_text("mine\n")
    with pytest.raises(UserError):
        transaction.apply(folder, BEFORE, CHANGES)
    assert found(folder) == {**BEFORE, "keep.txt": "mine\n"}


def test_line_ends_and_mode_of_a_file_stay(folder: Path) -> None:
    (folder / "Pulumi.yaml").write_bytes(b"a: 1\r\n")
    (folder / "Pulumi.yaml").chmod(0o600)
    transaction.apply(folder, BEFORE, CHANGES)
    assert (folder / "Pulumi.yaml").read_bytes() == b"a: 2\r\n"
    assert (folder / "Pulumi.yaml").stat().st_mode & 0o777 == 0o600


def test_one_update_runs_at_a_time(folder: Path) -> None:
    with transaction.exclusive(folder):
        with pytest.raises(UserError) as refused, transaction.exclusive(folder):
            pass
        assert refused.value.codes == (("client-update-running", "CLIENT"),)
