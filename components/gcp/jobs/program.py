"""A program of this tree in a container without files: a zip in an environment variable."""

import base64
from collections.abc import Sequence
from typing import Final

from infra.errors import Problem, UserError
from infra.launchers.program_zip import program_zip

VARIABLE: Final = "TRAINSTACK_PROGRAM"
# Source: Cloud Run documentation, "Quotas and limits" (environment variables: 32 KiB each).
_MOST_BYTES: Final = 32 * 1024

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
    packed = base64.b64encode(program_zip(main, modules)).decode()
    if len(packed) > _MOST_BYTES:
        rule = f"a variable of Cloud Run holds {_MOST_BYTES} bytes"
        raise UserError(
            [Problem(VARIABLE, len(packed), rule, "Make the program smaller.", code="program-too-large")]
        )
    return packed
