"""Signals, last words and the moments in between."""

import os
import signal
import sys
from pathlib import Path

import pytest

from agents.managed_job.supervisor import KEPT_BYTES, Supervisor


def test_a_stop_that_came_first_starts_nothing(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        os.kill(os.getpid(), signal.SIGTERM)
        ended = supervisor.run(["touch", "begun"], os.environ, tmp_path)
    assert (ended.code, supervisor.stopped) == (143, signal.SIGTERM)
    assert not (tmp_path / "begun").exists()


def test_handlers_are_as_before_in_the_end() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Supervisor():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_end_of_a_long_error_output_is_kept_and_all_of_it_passed_on(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = "import sys; sys.stderr.write('x' * 200_000 + '\\nthe end\\n')"
    with Supervisor() as supervisor:
        ended = supervisor.run([sys.executable, "-c", text], os.environ, tmp_path)
    assert ended.last[-1] == "the end" and len("\n".join(ended.last)) <= KEPT_BYTES
    assert len(capfdbinary.readouterr().err) == 200_009


def test_who_keeps_the_error_output_open_does_not_keep_the_job(tmp_path: Path) -> None:
    text = "import subprocess; subprocess.Popen(['sleep', '30'], start_new_session=True); print('left')"
    with Supervisor() as supervisor:
        ended = supervisor.run([sys.executable, "-c", text], {**os.environ, "MARK": str(tmp_path)}, tmp_path)
    assert ended.code == 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _marked(entry, str(tmp_path)):
            os.kill(int(entry.name), signal.SIGKILL)


def _marked(entry: Path, mark: str) -> bool:
    try:
        return f"MARK={mark}".encode() in (entry / "environ").read_bytes()
    except OSError:
        return False


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        ended = supervisor.run(["no-such-program"], os.environ, tmp_path)
    assert (ended.code, ended.last) == (127, ("no-such-program: No such file or directory",))
