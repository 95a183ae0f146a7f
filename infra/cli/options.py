"""Options that several commands share."""

from typing import Annotated

import typer

Stack = Annotated[
    str, typer.Option("--stack", "-s", help="The stack: a file stacks/config/Pulumi.<stack>.yaml.")
]
Rehearse = Annotated[
    bool, typer.Option("--rehearse", help="Use the emulated clouds on this machine instead of the real ones.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before changing anything.")]
