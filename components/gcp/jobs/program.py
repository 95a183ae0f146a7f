"""A program of this tree in a container without files: a zip in an environment variable."""

import base64
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from infra.errors import Problem, UserError

VARIABLE: Final = "TRAINSTACK_PROGRAM"
# Source: Cloud Run documentation, "Quotas and limits" (environment variables: 32 KiB each).
_MOST_BYTES: Final = 32 * 1024
_ROOT: Final = Path(__file__).resolve().parents[3]
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)

START: Final = (
    "import base64,os,runpy,sys;"
    f"path='/tmp/trainstack.zip';open(path,'wb').write(base64.b64decode(os.environ.pop('{VARIABLE}')));"
    "sys.argv[0]=path;sys.path.insert(0,path);runpy.run_path(path,run_name='__main__')"
)
"""Program of `python3 -c`: the zip is written to memory (`/tmp` of Cloud Run) and run from there."""


def zipped(main: str, modules: Sequence[str]) -> str:
    """Modules of this tree as a runnable zip in base64; `main` is the module whose `main(arguments)` runs.

    The same bytes for the same sources: another text is another revision of the service. Raises UserError
    when it does not fit into a variable.
    """
    buffer = io.BytesIO()
    packages = {name.rsplit(".", depth)[0] for name in modules for depth in range(1, name.count(".") + 1)}
    texts = {f"{package.replace('.', '/')}/__init__.py": "" for package in packages}
    texts |= {f"{name.replace('.', '/')}.py": _source(name) for name in modules}
    texts["__main__.py"] = f"import sys\nfrom {main} import main\nsys.exit(main(sys.argv[1:]))\n"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(texts):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), texts[name], zipfile.ZIP_DEFLATED)
    packed = base64.b64encode(buffer.getvalue()).decode()
    if len(packed) > _MOST_BYTES:
        rule = f"a variable of Cloud Run holds {_MOST_BYTES} bytes"
        raise UserError(
            [Problem(VARIABLE, len(packed), rule, "Make the program smaller.", code="program-too-large")]
        )
    return packed


def _source(module: str) -> str:
    return (_ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
