"""Rules of a large stack whose clusters are on several clouds (docs/adr/0100), or in several accounts."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from infra.errors import Problem
from infra.stackspec.clusters.large import OF_OTHER_CLOUD, OF_OTHER_PLACE, ClusterSpec, LargeLayout
from infra.stackspec.rules import accounts
from infra.stackspec.several.clouds import CLOUDS, names_of
from infra.stackspec.stack import StackSpec

CLUSTERS = "layout.clusters"
LOGINS = frozenset({("aws", "gcp")})
"""Clouds of a manager and of a cluster on another one, for which there is a login without keys."""
_EFA = "public.ecr.aws/deep-learning-containers/"
"""Images of AWS, with the plugin of EFA (AWS Deep Learning Containers, release notes)."""
_MEMBERS = re.compile(r"(?P<start>teams\[(?P<team>\d+)\]\.members)\[\d+\]")
_PLACES = {
    "budget.monthly_usd": "monthly_usd",
    "tracking.image": "tracking_image",
    "smoke.image": "smoke_image",
    "layout.system_pool.machine": "system_machine",
    "layout.idle_minutes": "idle_minutes",
}
"""Paths in the spec of a cluster on another cloud, and its own fields there."""


def _other(spec: StackSpec, layout: LargeLayout) -> Iterator[tuple[str, str, ClusterSpec]]:
    """Clusters on another cloud, with their paths and clouds."""
    for index, one in enumerate(layout.clusters):
        if one.cloud not in (None, spec.on.cloud):
            yield f"{CLUSTERS}[{index}]", str(one.cloud), one


def clouds(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """The manager has a login to the cloud of each cluster."""
    for path, cloud, _ in _other(spec, layout):
        if (spec.on.cloud, cloud) not in LOGINS:
            rule = f"a manager on {spec.on.cloud} has no login there"
            fix = "Set trainstack:cloud to aws, whose managers have clusters on both; or use another stack."
            yield Problem(
                f"{path}.cloud", cloud, rule, fix, "trainstack:cloud", code="cluster-on-other-cloud"
            )


def own_settings(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """A cluster on another cloud has settings and a budget of its own there.

    On the manager's cloud, a cluster in another account or project may have some of them, and others none.
    """
    others = {path for path, _, _ in _other(spec, layout)}
    for index, one in enumerate(layout.clusters):
        path = f"{CLUSTERS}[{index}]"
        if path not in others:
            kept = OF_OTHER_PLACE if accounts.is_apart(spec, one) else ()
            for name in OF_OTHER_CLOUD:
                if name not in kept and (value := getattr(one, name)) is not None:
                    rule = f"the cluster is on {spec.on.cloud}, where the setting of the stack holds"
                    shown = None if name == "on" else value
                    where, fix = f"{path}.{name}", "Leave it out, or set `cloud`."
                    if name in OF_OTHER_PLACE:
                        fix = f"Leave it out, or set `cloud` or another `on.{spec.on.place_field}`."
                    yield Problem(where, shown, rule, fix, f"{path}.cloud", code="setting-of-other-cloud")
            continue
        if (spec.on.cloud, one.cloud) not in LOGINS:
            continue  # it has no place here, whatever its settings
        if one.on is None:
            rule, fix = (
                "settings of its cloud are missing",
                "Write a mapping: project, admins and the others.",
            )
            yield Problem(f"{path}.on", None, rule, fix, f"{path}.cloud", code="settings-of-cloud-missing")
        if one.monthly_usd is None:
            rule = "no budget counts two clouds"
            fix = "Set its part of budget.monthly_usd."
            where, against = f"{path}.monthly_usd", "budget.monthly_usd"
            yield Problem(where, None, rule, fix, against, code="budget-of-cluster-missing")


def budget_parts(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """The parts of the budget elsewhere leave some of it for the manager's."""
    parts = {
        f"{CLUSTERS}[{index}]": one.monthly_usd
        for index, one in enumerate(layout.clusters)
        if one.monthly_usd is not None
    }
    total = spec.budget.monthly_usd
    if parts and sum(parts.values()) >= total:
        spent = f"{sum(parts.values()):g}"
        rule = f"with {spent} in budgets of clusters, nothing of {total:g} is left for the manager's"
        fix = "Lower it, or raise budget.monthly_usd."
        path = f"{[*parts][-1]}.monthly_usd"
        yield Problem(
            path, [*parts.values()][-1], rule, fix, "budget.monthly_usd", code="budget-parts-too-large"
        )


def members(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """Each team with members has some on the cloud of the manager, where its jobs are queued."""
    if not any(_other(spec, layout)):
        return
    for index, team in enumerate(spec.teams):
        if team.members and not any(names_of(spec.on.cloud, team.members)):
            rule = f"no member has a name on {spec.on.cloud}, where jobs are submitted"
            fix = "Add the names there, beside those on the clouds of clusters."
            where = f"teams[{index}].members"
            yield Problem(where, list(team.members), rule, fix, code="team-without-member-of-manager")


def images(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """A cluster pulls no image from a private registry of another cloud: its nodes have no login there."""
    common = {"tracking": spec.tracking.image if spec.tracking else None, "smoke": spec.smoke.image}
    for path, cloud, one in _other(spec, layout):
        if (spec.on.cloud, cloud) not in LOGINS:
            continue
        for name, image in common.items():
            hosts = {other: model.private_registry for other, model in CLOUDS.items() if other != cloud}
            foreign = [other for other, pattern in hosts.items() if pattern.match(image or "")]
            if foreign and getattr(one, f"{name}_image") is None:
                rule = f"{name}.image is in a private registry on {foreign[0]}"
                fix = "Set an image in a registry that its nodes reach."
                where, against = f"{path}.{name}_image", f"{name}.image"
                yield Problem(where, None, rule, fix, against, code="image-of-other-cloud")
        fast = any(pool.rdma for pool in one.pools)
        of_aws = spec.smoke.enabled and (common["smoke"] or "").startswith(_EFA)
        if of_aws and fast and one.smoke_image is None:
            rule = f"smoke.image has the network plugin of aws, and none for the pools with RDMA on {cloud}"
            fix = "Set an image with PyTorch, NCCL and the plugin of that cloud."
            where, against = f"{path}.smoke_image", "smoke.image"
            yield Problem(where, None, rule, fix, against, code="image-of-other-cloud")


def endpoints(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """On Google Cloud the manager reaches API servers by name: it has no address that a range could allow."""
    clusters = {f"{CLUSTERS}[{index}].on": one.on for index, one in enumerate(layout.clusters)}
    given = {"on": spec.on, **clusters}
    for path, on in given.items():
        if getattr(on, "endpoint", None) == "ip":
            rule = "the manager reaches API servers of clusters by their DNS names alone"
            fix = "Set dns, with `api_access: []`."
            yield Problem(f"{path}.endpoint", "ip", rule, fix, code="endpoint-of-clusters")


RULES: tuple[Callable[[StackSpec, LargeLayout], Iterator[Problem]], ...] = (
    clouds,
    own_settings,
    budget_parts,
    members,
    images,
    endpoints,
    *accounts.RULES,
)


def own_path(path: str, one: ClusterSpec, index: int) -> str:
    """Path of a value of a cluster on another cloud that is its own; empty for others."""
    here = f"{CLUSTERS}[{index}]"
    if one.on is None:
        return ""
    if path.startswith("on."):
        return f"{here}.{path}"
    own = _PLACES.get(path, "")
    return f"{here}.{own}" if own and getattr(one, own) is not None else ""


def at_member(problem: Problem, spec: StackSpec) -> Problem:
    """A problem of a cluster with a member at the place in the one list of all names."""
    found = _MEMBERS.fullmatch(problem.path)
    listed = spec.teams[int(found["team"])].members if found else ()
    if not found or problem.value not in listed:
        return problem
    return replace(problem, path=f"{found['start']}[{listed.index(str(problem.value))}]")
