"""Policies of the organization that would stop the deployment, as they hold for the project.

Those that do not stand in its way are not asked: nodes are Shielded VMs with secure boot
(compute.requireShieldedVm) and have no external address (compute.vmExternalIpAccess), GKE's nodes go with OS
Login (compute.requireOsLogin).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from infra.stackspec.layouts import SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp import apis
from trainstack.preflight.gcp.project import Project, Row

_CHECK: Final = "organization-policies"
_REGION: Final = re.compile(r"[a-z]+-[a-z]+\d+")
_ZONE: Final = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
# Groups of locations that hold the regions of a continent by their names (Organization Policy documentation,
# "Restrict resource locations", value groups). Of others, such as `eu-locations`, the members are not known.
_CONTINENTS: Final[dict[str, str]] = {
    "us-locations": "us-",
    "europe-locations": "europe-",
    "asia-locations": "asia-",
    "australia-locations": "australia-",
}
Matches = Callable[[Project, str], bool | None]


def standing_in_the_way(project: Project) -> Iterator[Answer]:
    """No policy that holds for the project forbids what the stack makes."""
    judges = _OF_JOBS if isinstance(project.layout, SmallLayout) else _OF_CLUSTERS
    found = [answer for judge in (*judges, *_OF_EVERY) for answer in judge(project)]
    yield from found
    if not found:
        yield Answer(_CHECK, State.READY, "no policy of the organization forbids what the stack makes")


def _switched(constraint: str, why: str) -> Callable[[Project], Iterator[Answer]]:
    """A judge of a constraint that is on or off."""

    def judge(project: Project) -> Iterator[Answer]:
        rules = _rules(project, constraint)
        on = [rule for rule in rules if rule.get("enforce")]
        if any("condition" not in rule for rule in on):
            yield _forbidden(constraint, why)
        elif on:
            yield _depends(constraint)

    return judge


def _listed(
    constraint: str, why: str, values: Callable[[Project], Sequence[str]], by: Matches
) -> Callable[[Project], Iterator[Answer]]:
    """A judge of a constraint that allows or denies values, of those that the stack needs."""

    def judge(project: Project) -> Iterator[Answer]:
        rules = _rules(project, constraint)
        verdicts = {value: _allowed(project, rules, value, by) for value in values(project)}
        denied = [value for value, verdict in verdicts.items() if verdict is False]
        if denied:
            yield _forbidden(constraint, why.format(values=", ".join(denied)))
        elif None in verdicts.values():
            yield _depends(constraint)

    return judge


def _rules(project: Project, constraint: str) -> Sequence[Row]:
    """The rules that hold for the project. One that the service does not know binds nothing."""
    name = f"{project.path}/policies/{constraint}"
    found = project.found("orgpolicy.projects.policies.getEffectivePolicy", name=name)
    return [*((found or {}).get("spec") or {}).get("rules", ())]


def _allowed(project: Project, rules: Sequence[Row], value: str, by: Matches) -> bool | None:
    """Whether a value is allowed; None where it is not known here, or depends on tags."""
    verdicts: list[bool | None] = []
    for rule in rules:
        verdict = _by_rule(project, rule, value, by)
        # A rule with a condition holds where a resource has certain tags.
        verdicts.append(None if verdict is False and "condition" in rule else verdict)
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _by_rule(project: Project, rule: Row, value: str, by: Matches) -> bool | None:
    if rule.get("denyAll"):
        return False
    found = rule.get("values") or {}
    denied = [_match(project, one, value, by) for one in found.get("deniedValues") or ()]
    if True in denied:
        return False
    allowed = [_match(project, one, value, by) for one in found.get("allowedValues") or ()]
    if allowed and True not in allowed:
        return None if None in allowed else False
    return None if None in denied else True


def _match(project: Project, one: str, value: str, by: Matches) -> bool | None:
    return True if one.removeprefix("is:") == value else by(project, one)


def _forbidden(constraint: str, why: str) -> Answer:
    fix = "Ask who administers the organization's policies for an exception for the project."
    return Answer(_CHECK, State.SHORT, f"{constraint}: {why}", fix)


def _depends(constraint: str) -> Answer:
    said = f"{constraint} is set, and whether it allows what the stack makes cannot be told here"
    return Answer(_CHECK, State.UNKNOWN, said, "Ask who administers the organization's policies.")


def _exactly(_: Project, __: str) -> bool | None:
    return False


def _location(project: Project, one: str) -> bool | None:
    """Whether a value of gcp.resourceLocations, a place or a group of places, holds the region."""
    name, region = one.removeprefix("in:").removeprefix("is:"), project.spec.region
    if name == f"{region}-locations":
        return True
    if name in _CONTINENTS:
        return region.startswith(_CONTINENTS[name])
    bare = name.removesuffix("-locations")
    # Another region, a single zone, or a multi-region, which is a place of its own.
    if _REGION.fullmatch(bare) or _ZONE.fullmatch(name) or name in ("us", "eu", "asia", "global"):
        return False
    return None


def _below(project: Project, one: str) -> bool | None:
    """Whether a value that names machines, or all below something, holds what is in the project."""
    if one.startswith("under:"):
        return True if one == f"under:{project.path}" else None
    return False


def _peer(_: Project, __: str) -> bool | None:
    """Google's services peer from projects of their own, which nobody outside knows."""
    return None


_OF_CLUSTERS: Final = (
    # hashicorp/terraform-provider-google issue 4989.
    _listed(
        "compute.vmCanIpForward",
        "nodes of GKE forward packets to pods, and may not here",
        lambda project: [
            f"{project.path}/zones/{project.cluster.zones[0]}/instances/gke-{project.spec.name}"
        ],
        _below,
    ),
)
_OF_JOBS: Final = (
    _switched("ainotebooks.disableTerminal", "notebooks have a terminal, without which there is no git"),
    # People at home and jobs, which run in a network of Google's, come from outside of the stack's network.
    _listed(
        "run.allowedIngress", "MLflow is reached from everywhere, behind a login", lambda _: ["all"], _exactly
    ),
)
_OF_EVERY: Final = (
    # With it, and sql.restrictPublicIp beside it, no way is left to the database.
    _listed(
        "compute.restrictVpcPeering",
        "the network may not peer with Google's services, by which the database is reached",
        lambda _: ["servicenetworking"],
        _peer,
    ),
    _listed(
        "compute.restrictCloudNATUsage",
        "machines have no address of their own, and may have no Cloud NAT",
        lambda project: [f"{project.path}/regions/{project.spec.region}/subnetworks/{project.spec.name}"],
        _below,
    ),
    _listed(
        "gcp.resourceLocations",
        "nothing may be made in {values}",
        lambda project: [project.spec.region],
        _location,
    ),
    _listed("gcp.restrictServiceUsage", "these may not be used: {values}", apis.wanted, _exactly),
    _switched(
        "iam.disableServiceAccountCreation",
        "no service account can be made for what runs in the stack",
    ),
)
