"""The check of organization policies that apply to the project and would block the deployment.

Policies that the stack satisfies are not checked: nodes are Shielded VMs with secure boot
(compute.requireShieldedVm) without external addresses (compute.vmExternalIpAccess), nodes of GKE support
OS Login (compute.requireOsLogin), buckets have uniform access (storage.uniformBucketLevelAccess), accounts
have no keys (iam.disableServiceAccountKeyCreation), and none is a default one
(iam.automaticIamGrantsForDefaultServiceAccounts). New organizations enforce most of these.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from infra.stackspec.layouts import SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp import apis, identity
from trainstack.preflight.gcp.project import Project, Row

_CHECK: Final = "organization-policies"
_DOMAINS: Final = "iam.allowedPolicyMemberDomains"
_REGION: Final = re.compile(r"[a-z]+-[a-z]+\d+")
_ZONE: Final = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
# Groups of locations with the regions of a continent by their names (Organization Policy documentation,
# "Restrict resource locations", value groups). Of others, such as `eu-locations`, the members are not known.
_CONTINENTS: Final[dict[str, str]] = {
    "us-locations": "us-",
    "europe-locations": "europe-",
    "asia-locations": "asia-",
    "australia-locations": "australia-",
}
Matches = Callable[[Project, str], bool | None]


def blocking(project: Project) -> Iterator[Answer]:
    """No policy that applies to the project forbids a resource of the stack."""
    judges = _OF_JOBS if isinstance(project.layout, SmallLayout) else _OF_CLUSTERS
    found = [answer for judge in (*judges, *_OF_EVERY) for answer in judge(project)]
    yield from found
    if not found:
        yield Answer(_CHECK, State.READY, "no policy of the organization forbids a resource of the stack")


def _switched(constraint: str, why: str) -> Callable[[Project], Iterator[Answer]]:
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
    """The check of a list constraint for the values that the stack needs."""

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
    """The rules that apply to the project; none for a constraint that the service does not know."""
    name = f"{project.path}/policies/{constraint}"
    found = project.found("orgpolicy.projects.policies.getEffectivePolicy", name=name)
    return [*((found or {}).get("spec") or {}).get("rules", ())]


def _allowed(project: Project, rules: Sequence[Row], value: str, by: Matches) -> bool | None:
    """Return whether a value is allowed; None where that is unknown, or depends on tags."""
    verdicts: list[bool | None] = []
    for rule in rules:
        verdict = _by_rule(project, rule, value, by)
        # A rule with a condition applies only to resources with certain tags.
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


def _shared(project: Project) -> Iterator[Answer]:
    """Members of other organizations may have roles, or the stack has none.

    Values are customers of Google Workspace; no API of the project gives their domains. Budgets
    grant Google's publisher a topic. Source: Organization Policy documentation, "Domain restricted sharing"
    (`iam.allowedPolicyMemberDomains`; enforced in new organizations), and `components/gcp/money/budget.py`.
    """
    rules = _rules(project, _DOMAINS)
    limits = [rule for rule in rules if rule.get("denyAll") or rule.get("values")]
    if not limits:
        return
    if outside := identity.consumers(project):
        yield _forbidden(_DOMAINS, f"members outside of the organization are forbidden: {', '.join(outside)}")
    text = f"{_DOMAINS} is set; Cloud Billing's publisher of budgets, and members of other domains, need it"
    fix = (
        f"Let the administrator of organization policies exempt the project, or allow the customers of "
        f"{', '.join(identity.domains(project)) or 'all members'} and the publisher of budgets."
    )
    yield Answer(_CHECK, State.NOTE, text, fix)


def _forbidden(constraint: str, why: str) -> Answer:
    fix = "Request an exception for the project from the administrator of organization policies."
    return Answer(_CHECK, State.SHORT, f"{constraint}: {why}", fix)


def _depends(constraint: str) -> Answer:
    text = f"{constraint} is set; its effect on the stack cannot be determined here"
    return Answer(_CHECK, State.UNKNOWN, text, "Check with the administrator of organization policies.")


def _exactly(_: Project, __: str) -> bool | None:
    return False


def _location(project: Project, one: str) -> bool | None:
    """Return whether a value of gcp.resourceLocations, a location or a group, contains the region."""
    name, region = one.removeprefix("in:").removeprefix("is:"), project.spec.region
    if name == f"{region}-locations":
        return True
    if name in _CONTINENTS:
        return region.startswith(_CONTINENTS[name])
    bare = name.removesuffix("-locations")
    # Another region, a single zone, or a multi-region, which is a location of its own.
    if _REGION.fullmatch(bare) or _ZONE.fullmatch(name) or name in ("us", "eu", "asia", "global"):
        return False
    return None


def _below(project: Project, one: str) -> bool | None:
    """Return whether a value that names machines, or everything below a resource, contains the project."""
    if one.startswith("under:"):
        return True if one == f"under:{project.path}" else None
    return False


def _peer(_: Project, __: str) -> bool | None:
    """None: services of Google peer from projects whose ids are not public."""
    return None


_OF_CLUSTERS: Final = (
    # hashicorp/terraform-provider-google issue 4989.
    _listed(
        "compute.vmCanIpForward",
        "nodes of GKE forward packets to pods, which is forbidden",
        lambda project: [
            f"{project.path}/zones/{project.cluster.zones[0]}/instances/gke-{project.spec.name}"
        ],
        _below,
    ),
)
_OF_JOBS: Final = (
    _switched("ainotebooks.disableTerminal", "notebooks need a terminal for git"),
    # Users and jobs, which run in a network of Google's, connect from outside of the stack's network.
    _listed(
        "run.allowedIngress",
        "MLflow accepts connections from everywhere, behind a login",
        lambda _: ["all"],
        _exactly,
    ),
)
_OF_EVERY: Final = (
    # With sql.restrictPublicIp as well, the database could not be reached.
    _listed(
        "compute.restrictVpcPeering",
        "peering with Google's services is forbidden, by which the database is reached",
        lambda _: ["servicenetworking"],
        _peer,
    ),
    _listed(
        "compute.restrictCloudNATUsage",
        "Cloud NAT is forbidden, which machines without external addresses need",
        lambda project: [f"{project.path}/regions/{project.spec.region}/subnetworks/{project.spec.name}"],
        _below,
    ),
    _listed(
        "gcp.resourceLocations",
        "resources in {values} are forbidden",
        lambda project: [project.spec.region],
        _location,
    ),
    _listed("gcp.restrictServiceUsage", "these services are forbidden: {values}", apis.wanted, _exactly),
    _switched("iam.disableServiceAccountCreation", "service accounts of the stack cannot be created"),
    _switched("iam.managed.disableServiceAccountCreation", "service accounts of the stack cannot be created"),
    _shared,
)
