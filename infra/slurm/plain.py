"""Accounts without limits, for a service that registers its cluster itself and enforces none (pure).

They separate the jobs of teams in reports of sacct.
"""

from collections.abc import Sequence

from infra.catalog import slurm_names as names
from infra.slurm.accounts import HEAD


def accounts_script(teams: Sequence[str]) -> str:
    """accounts.sh: an account for each team."""
    accounts = [names.account(one) for one in teams]
    lines = [f"add account {one} Description={one} Organization={one}" for one in accounts]
    return "\n".join([HEAD.rstrip(), *lines]) + "\n"


def validation_script(user: str) -> str:
    """The account of validations, for a user or a word of the shell such as `"$user"`."""
    name = names.VALIDATION
    lines = [f"add account {name} Description={name} Organization={name}", f"add user {user} account={name}"]
    return "\n".join([HEAD.rstrip(), *lines]) + "\n"


def users_script(teams: Sequence[str]) -> str:
    """add-user.sh USER TEAM: a member of a team."""
    accounts = [names.account(one) for one in teams]
    return (
        "\n".join(
            [
                HEAD.rstrip(),
                "user=${1:?user name} team=${2:?account of the team}",
                'case "$team" in',
                *(f'  {one}) add user "$user" account={one} ;;' for one in accounts),
                f'  *) echo "no account $team; there are {", ".join(accounts)}" >&2; exit 2 ;;',
                "esac",
            ]
        )
        + "\n"
    )
