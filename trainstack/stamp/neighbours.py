"""Other clients in the same parent folder: their names and accounts."""

import re
from collections.abc import Iterator
from pathlib import Path

from infra.errors import Problem, UserError
from trainstack.bootstrap.stacks import siblings
from trainstack.stamp.choices import ClientChoices
from trainstack.stamp.clouds import STAMPED

_NAME = re.compile(r"^name:\s*[\"']?([\w.-]+)", re.MULTILINE)


def check(choices: ClientChoices, folder: Path) -> None:
    """Raise UserError where another client's folder beside this one has its project or its account.

    Names differ in more than case: some file systems and most names of resources know none.
    """
    problems = [*_problems(choices, folder.absolute())]
    if problems:
        raise UserError(problems)


def _problems(choices: ClientChoices, folder: Path) -> Iterator[Problem]:
    for other in siblings(folder):
        found = _NAME.search(_text(other / "Pulumi.yaml"))
        if found and found[1].casefold() == choices.name:
            rule = f"is the project of another client, in {other}"
            fix = "Choose another CLIENT: states and rehearsals are kept by project."
            yield Problem("CLIENT", choices.name, rule, fix, code="client-name-taken")
        if choices.account and (taken := _with_account(other, choices)):
            rule = f"is the account of another client, in {taken}"
            fix = (
                "Give each client an account: people of one see jobs and costs of the other. "
                "To share it knowingly, leave --account out and set it in the stack files."
            )
            yield Problem("--account", choices.account, rule, fix, code="client-account-taken")


def _with_account(folder: Path, choices: ClientChoices) -> Path | None:
    """The first file with the account; an account marked as an example is that of no client."""
    key = STAMPED[choices.cloud].account_key
    form = re.compile(
        rf"^\s+{key}:\s*[\"']?{re.escape(choices.account)}[\"']?\s*(#(?!.*\ban example\b).*)?$", re.MULTILINE
    )
    files = sorted([*folder.glob("Pulumi.*.yaml"), *folder.glob("clients/*.yaml")])
    return next((file for file in files if form.search(_text(file))), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
