"""The program of a pod as a process of its own, beside a real control plane."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from components.kubernetes.programs.program import Program
from rehearsal.controlplane.api import Access


def started(
    program: Program,
    given: Mapping[str, object],
    access: Access,
    token: str,
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Run a program with the files of its account, and only what its pod has, in `folder`."""
    for module, text in program.texts.items():
        path = folder / f"{module.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, data in program.data.items():
        (folder / name).write_bytes(data)
    (folder / "ca.crt").write_bytes(access.authority.read_bytes())
    (folder / "token").write_text(token)
    host, port = access.server.removeprefix("https://").split(":")
    words = {**given, "account": folder}
    return subprocess.Popen(
        [sys.executable, "-m", program.module]
        + [str(word) for key, value in words.items() for word in (f"--{key}", value)],
        env={"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, **(environment or {})},
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(process: "subprocess.Popen[str]", folder: Path, patience_s: float) -> tuple[int, str]:
    """The exit code and the termination message of a program that ends in time."""
    with process:
        try:
            _, stderr = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert "Traceback" not in stderr, stderr
    return process.returncode, (folder / "message").read_text()
