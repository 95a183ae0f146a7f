"""The layers of a spec: profile, cloud overlay, client, stack file; each a YAML file, later over earlier."""

from functools import cache
from pathlib import Path

from infra import places
from infra.errors import Problem, UserError, did_you_mean
from infra.stackspec.document import Branch, Node, Origin, node, parsed, text_of
from infra.stackspec.supported import CLOUDS, PROFILES, SUPPORTED, pairs

PROFILES_FOLDER = places.PACKAGES / "stacks" / "profiles"
CLIENTS = (places.STACKS or Path()) / "clients"


def below(profile: str, cloud: str, client: str | None, clients: Path | None = None) -> list[Node]:
    """The layers below a stack file, the lowest first. Raises UserError with every problem.

    `clients` is the folder of the layers of clients, by default that of this checkout or client.
    """
    clients = clients or CLIENTS
    problems = [*_choice_problems(profile, cloud), *_client_problems(client, clients)]
    if problems:
        raise UserError(problems)
    found = [_layer(PROFILES_FOLDER / f"{profile}.yaml"), overlay(profile, cloud)]
    return found if client is None else [*found, _layer(clients / f"{client}.yaml")]


def overlay(profile: str, cloud: str) -> Node:
    """The layer of a profile for one cloud."""
    return _layer(PROFILES_FOLDER / f"{profile}.{cloud}.yaml")


def _choice_problems(profile: str, cloud: str) -> list[Problem]:
    problems = [
        Problem(
            f"trainstack:{setting}", value, "no such choice", _nearest(value, known), code="no-such-choice"
        )
        for setting, value, known in (("profile", profile, PROFILES), ("cloud", cloud, CLOUDS))
        if value not in known
    ]
    if not problems and (profile, cloud) not in SUPPORTED:
        rule = f"profile {profile} is not supported on {cloud}"
        fix = f"Supported: {pairs()}."
        problems.append(Problem("trainstack:profile", profile, rule, fix, code="profile-not-on-cloud"))
    return problems


def _nearest(value: object, known: tuple[str, ...]) -> str:
    return did_you_mean(value, known, f"Choose from {', '.join(known)}. Supported: {pairs()}.")


def _client_problems(client: str | None, clients: Path) -> list[Problem]:
    if client is None or (clients / f"{client}.yaml").is_file():
        return []
    known = ", ".join(sorted(file.stem for file in clients.glob("*.yaml"))) or "none"
    fix = f"Clients with a file: {known}. Add clients/{client}.yaml, or remove the setting."
    rule = "the client has no layer file"
    return [Problem("trainstack:client", client, rule, fix, code="client-without-layer")]


def _layer(path: Path) -> Node:
    source = f"{path.parent.name}/{path.name}"
    return _tree(text_of(path, source), source)


@cache
def _tree(text: str, source: str) -> Node:
    """The tree of a layer; commands that load several stacks parse each text once."""
    content = parsed(text, source)
    if content is None:
        return Branch({}, Origin(source))
    tree = node(content, source)
    if not isinstance(tree, Branch):
        rule, fix = "a layer is a mapping", "See stacks/profiles/medium.yaml."
        raise UserError([Problem(source, None, rule, fix, code="layer-not-a-mapping")])
    return tree
