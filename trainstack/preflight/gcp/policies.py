"""The check of organization policies that apply to the project and would block the deployment.

Policies that the stack satisfies are not checked: nodes are Shielded VMs with secure boot
(compute.requireShieldedVm) without external addresses (compute.vmExternalIpAccess), nodes of GKE support
OS Login (compute.requireOsLogin), buckets have uniform access (storage.uniformBucketLevelAccess), accounts
have no keys (iam.disableServiceAccountKeyCreation), and none is a default one
(iam.automaticIamGrantsForDefaultServiceAccounts). Of the baseline of new organizations, only
domain-restricted sharing can forbid something (`rehearsal/gcp/organization_baseline.py` has all of it).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from infra.catalog.gcp.deploying import PUBLISHER
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp import apis, identity
from trainstack.preflight.gcp.project import Project, Row

_CHECK: Final = "organization-policies"
_DOMAINS: Final = "iam.allowedPolicyMemberDomains"
_MEMBERS: Final = "iam.managed.allowedPolicyMembers"
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
Judge = Callable[[Project], Iterator[Answer]]
Matches = Callable[[Project, str], bool | None]


def blocking(project: Project) -> Iterator[Answer]:
    """No policy that applies to the project forbids a resource of the stack."""
    judges: Sequence[Judge] = _OF_JOBS if isinstance(project.layout, SmallLayout) else ()
    judges = _OF_CLUSTERS if isinstance(project.layout, ClusterLayout) else judges
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

    The legacy constraint has customers of Google Workspace as values, whose domains no API of the project
    gives. The managed one names members and principal sets. Both judge new bindings only, and count accounts
    and agents of the organization's projects as its own. Source: Organization Policy documentation,
    "Restrict identities with domain-restricted sharing"; new organizations enforce one or both.
    """
    legacy = [rule for rule in _rules(project, _DOMAINS) if rule.get("denyAll") or rule.get("values")]
    managed = [rule for rule in _rules(project, _MEMBERS) if rule.get("enforce")]
    for constraint, rules in ((_DOMAINS, legacy), (_MEMBERS, managed)):
        if rules:
            yield from _members(project, constraint, rules)


def _members(project: Project, constraint: str, rules: Sequence[Row]) -> Iterator[Answer]:
    """Answers for a constraint that limits members."""
    named = {one.lower().rpartition(":")[2] for rule in rules for one in _subjects(rule)}
    outside = [one for one in identity.consumers(project) if one.rpartition(":")[2] not in named]
    if isinstance(project.layout, SmallLayout) and _publisher_is_missing(project, rules):
        outside.append(PUBLISHER)
    fix = _allow(project, constraint, outside)
    if outside and any("condition" not in rule for rule in rules):
        why = f"members outside of the organization are forbidden: {', '.join(outside)}"
        yield Answer(_CHECK, State.SHORT, f"{constraint}: {why}", fix)
    elif outside:
        yield _depends(constraint)
    domains = ", ".join(identity.domains(project)) or "all members"
    text = f"{constraint} is set: members of {domains} have to be of an allowed organization"
    yield Answer(_CHECK, State.NOTE, text, _allow(project, constraint, []))


def _subjects(rule: Row) -> Sequence[str]:
    return [str(one) for one in (rule.get("parameters") or {}).get("allowedMemberSubjects") or ()]


def _publisher_is_missing(project: Project, rules: Sequence[Row]) -> bool:
    """Return whether budgets with a function would get no publisher; an existing binding stays valid."""
    if all(PUBLISHER in _subjects(rule) for rule in rules):
        return False
    start = f"{project.path}/topics/{project.spec.name}-budgets-"
    for topic in project.items("pubsub.projects.topics.list", "topics", project=project.path):
        if str(topic["name"]).startswith(start):
            policy = project.asked("pubsub.projects.topics.getIamPolicy", resource=topic["name"])
            bound = [one for row in policy.get("bindings") or () for one in row.get("members") or ()]
            return PUBLISHER not in bound
    return True


def _allow(project: Project, constraint: str, members: Sequence[str]) -> str:
    """The fix: the legacy constraint cannot name members, and neither applies to existing bindings."""
    if constraint == _MEMBERS and members:
        return f"Let its administrator add {', '.join(members)} to allowedMemberSubjects."
    return (
        f"Let its administrator except {project.on.project} during `up` (existing bindings stay), or allow "
        "the organizations of all members."
    )


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
