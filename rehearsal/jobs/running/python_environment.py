"""A machine's own Python environment: packages that a job installs stay in the job's folder."""

import shlex
import site
import sys
import venv
from pathlib import Path

_LAUNCHER = '#!/bin/sh\nexec {python} {script} "$@"\n'


def create(folder: Path) -> Path:
    """Create an empty virtual environment over the one of this process; return its Python.

    As in an image, packages that are there already satisfy requirements, and those of the job come first.
    pip leaves packages outside of its own prefix as they are (pip 23.2 pip/_internal/req/req_uninstall.py,
    UninstallPathSet.from_dist). `system_site_packages` would give the packages below the virtual environment
    in which trainstack is installed, so a .pth file adds those of this process, with their own .pth files.
    """
    venv.EnvBuilder(clear=True, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    lines = [f"import site; site.addsitedir({place!r})\n" for place in site.getsitepackages()]
    (packages / "rehearsal.pth").write_text("".join(lines))
    for script in Path(sys.executable).parent.iterdir():
        own = folder / "bin" / script.name
        if not own.exists() and _of_python(script):
            line = _LAUNCHER.format(python=shlex.quote(str(python)), script=shlex.quote(str(script)))
            own.write_text(line)
            own.chmod(0o755)
    return python


def _of_python(script: Path) -> bool:
    """Report whether Python runs this program, as it runs pip and torchrun.

    Where the path of Python is long, installers write a program of sh whose second line starts Python.
    """
    if not script.is_file():
        return False
    with script.open("rb") as file:
        first, second = (file.readline(512) for _ in range(2))
    return first.startswith(b"#!") and (b"python" in first or second.startswith(b"'''exec'"))
