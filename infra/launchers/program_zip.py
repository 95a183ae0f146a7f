"""A program of this tree as a runnable zip: the same bytes for the same sources."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def program_zip(main: str, modules: Sequence[str]) -> bytes:
    """Modules of this tree; `main` is the module whose `main(arguments)` runs."""
    buffer = io.BytesIO()
    packages = {name.rsplit(".", depth)[0] for name in modules for depth in range(1, name.count(".") + 1)}
    texts = {f"{package.replace('.', '/')}/__init__.py": "" for package in packages}
    texts |= {f"{name.replace('.', '/')}.py": _source(name) for name in modules}
    texts["__main__.py"] = f"import sys\nfrom {main} import main\nsys.exit(main(sys.argv[1:]))\n"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(texts):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), texts[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _source(module: str) -> str:
    return (_ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
