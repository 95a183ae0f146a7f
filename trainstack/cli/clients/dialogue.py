"""Questions for the choices of a new client that were not given as options."""

import sys
from collections.abc import Mapping

import typer

from trainstack.cli.output import print_fields

_PROFILES = {
    "small": "1 to 5 people, jobs of SageMaker or Vertex AI; no cluster to operate",
    "small-cluster": "a small Kubernetes cluster for five people, one GPU per node",
    "medium": "a cluster for several teams, with machines of eight GPUs, queues and shares",
    "large-slurm": "a Slurm system for 20 and more people: AWS PCS or Cluster Director",
}
_MEANING = {
    "cloud": "The cloud of the client's account.",
    "region": "All resources and data are in it; machines and prices differ between regions.",
    "owner": "Gets alarms about budget and jobs; a tag on every resource.",
    "budget": "US dollars per month of each environment; alarms before it is reached.",
    "account": "Credentials of any other account are refused. Empty: an example, to be replaced before `up`.",
}


def has_terminal() -> bool:
    """Return whether a user can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(name: str, given: Mapping[str, object]) -> Mapping[str, object]:
    """Ask for each missing choice, with its meaning and a default. Raises UserError for a wrong one."""
    from trainstack.stamp.choices import CLOUDS, ClientChoices, check  # noqa: PLC0415
    from trainstack.stamp.stack_file import completed  # noqa: PLC0415

    found = {**given}
    typer.echo(f"A new client, {name}. Enter takes the value in brackets; Ctrl-C writes nothing.\n")
    found["cloud"] = found["cloud"] or _answer("cloud", "aws", CLOUDS)
    if not found["profile"]:
        print_fields([*_PROFILES.items()], width=14)
        found["profile"] = _answer("profile", "medium", _PROFILES)
    choices = ClientChoices(name, str(found["cloud"]), str(found["profile"]))
    check(choices)
    usual = completed(choices)
    for one in ("region", "owner"):
        found[one] = found[one] or _answer(one, getattr(usual, one))
    while not found["budget"]:
        typer.echo(_MEANING["budget"])
        found["budget"] = max(0, typer.prompt("budget", default=usual.budget, type=int))
    found["account"] = found["account"] or _answer("account", "")
    return found


def _answer(name: str, default: str, known: Mapping[str, str] | tuple[str, ...] = ()) -> str:
    """One answer; asked again while it is not one of the known ones."""
    if name in _MEANING:
        typer.echo(_MEANING[name])
    while True:
        shown = f"{name} ({', '.join(known)})" if known else name
        answer = str(typer.prompt(shown, default=default, show_default=bool(default))).strip()
        if not known or answer in known:
            return answer
        typer.echo(f"Choose from {', '.join(known)}.")
