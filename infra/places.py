"""Folders of the packages, of the stacks that a command works on, and of its state; standard library only.

The packages lie in a checkout of the repository or are installed from a wheel. A command works on the folder
of a client in or below which it is run (`trainstack new` makes one), else on the checkout.
"""

import os
import re
import sys
from pathlib import Path
from typing import Final

PACKAGES: Final = Path(__file__).resolve().parents[1]
CHECKOUT: Final = PACKAGES if (PACKAGES / "tools" / "setup.py").is_file() else None
STATE_NAME: Final = ".trainstack"
PROGRAM: Final = f"{STATE_NAME}/program"
"""The `main` of a client's folder, by which it is recognised."""
_MAIN = re.compile(rf"^main:\s*['\"]?(\./)?{re.escape(PROGRAM)}/?['\"]?\s*(#.*)?$", re.MULTILINE)


DOCUMENTS: Final = CHECKOUT or Path(sys.prefix, "share", "doc", "trainstack")
"""The folder above `docs/`."""
_PAGE = re.compile(r"(?<![\w/.-])docs/[\w-]+/[\w/-]+\.md")
_DATA = re.compile(r"(?<![\w/.-])(stacks|rehearsal|components)/[\w/.-]+\.(json|yaml|toml)")


def located(text: str) -> str:
    """Text in which files of the repository are named as they can be opened here.

    A checkout names them from its root, an installation by their whole path.
    """
    if CHECKOUT:
        return text
    text = _PAGE.sub(lambda found: str(DOCUMENTS / found[0]), text)
    return _DATA.sub(lambda found: str(PACKAGES / found[0]), text)


def client_folder() -> Path | None:
    """The nearest client's folder, from the working directory upwards."""
    try:
        here = Path.cwd()
    except OSError:  # deleted meanwhile
        return None
    return client_folder_at(here)


def client_folder_at(place: Path) -> Path | None:
    """The nearest client's folder, from a folder upwards."""
    return next((folder for folder in (place, *place.absolute().parents) if _is_client(folder)), None)


def _is_client(folder: Path) -> bool:
    try:
        return bool(_MAIN.search((folder / "Pulumi.yaml").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def _stack_files() -> Path | None:
    if CLIENT:
        return CLIENT
    return CHECKOUT / "stacks" / "config" if CHECKOUT else None


CLIENT: Final = client_folder()
STACKS: Final = CLIENT or CHECKOUT
"""The Pulumi project of the stacks; None outside of one."""
STACK_FILES: Final = _stack_files()
USER: Final = (CHECKOUT or Path(os.path.expanduser("~"))) / STATE_NAME  # noqa: PTH111 - raises without a home
"""State that all projects share: the Pulumi CLI and the choice of it, binaries of a control plane."""
STATE: Final = STACKS / STATE_NAME if STACKS else USER
"""Rehearsals and error reports of the project."""
