"""Queues with quotas, fair share and priorities, with Kueue."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.device_claims import (
    claim_template,
    claimed_fabrics,
    team_template,
    template_body,
)
from components.kubernetes.manifest import Manifest
from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.people import SubjectArgs, group
from components.kubernetes.queueing import kueue, kueue_values, node_access
from components.kubernetes.queueing.admission import policies
from components.kubernetes.queueing.checks import connections, sent
from components.kubernetes.queueing.controller import controller
from components.kubernetes.queueing.defaults.fields import mutations
from components.kubernetes.queueing.leaving import clusters_leave
from components.kubernetes.queueing.quota_rules import check
from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs
from components.kubernetes.queueing.tenancy import GIVEN, GIVEN_LABEL, members, onlookers, tenant_namespace
from components.ordering import after
from infra.naming import gate_queue, team_group, team_namespace


class SendsArgs(TypedDict):
    """Clusters to which a cluster sends all jobs (docs/adr/0093)."""

    stack: str
    """Name of the stack: workers delete jobs of this origin that it does not know."""
    clusters: Sequence[str]
    """Names of the clusters; each has a Secret of its name in `kueue-system`, with a kubeconfig."""


class QueueingArgs(TypedDict):
    """Arguments of `Queueing`."""

    flavors: Sequence[FlavorArgs]
    """The pools that jobs run on."""
    teams: Sequence[TeamArgs]
    """The tenants; each gets a namespace, a queue and a share."""
    gate: GateArgs
    """Requirements of the deploy validation."""
    ready_image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run: of the pod that waits for webhooks."""
    control_plane: PlatformNetwork
    """Paths by which the API server calls webhooks."""
    ending: NotRequired[bool]
    """Whether the cluster refuses jobs without a deadline: those that declare none get one. Default False."""
    sends: NotRequired[SendsArgs | None]
    """The clusters that run the jobs of all teams. None, the default: this one."""
    before: NotRequired[Mapping[str, Any]]
    """Resources that exist before a team's namespace and end after it, by the team's name. Default: none."""


class Queueing(Component):
    """Kueue, one flavor a pool, and a namespace with a guaranteed, lendable share for every team.

    Where pods claim the devices of a pool, each namespace of a team has the template of such a claim.

    Namespaces come after all queues, so they are deleted before them, with every job in them: a ClusterQueue
    is not deleted while a job holds its quota, and Workloads keep their finalizers once Kueue is gone
    (docs/adr/0047).

    Where jobs run on other clusters, those of a cluster that is not listed any more are moved before it is
    disconnected.

    Raises UserError, with every problem, when shares and pools do not fit together.
    """

    cohort: pulumi.Output[str]
    """The cohort in which all queues borrow from each other."""
    team_namespaces: pulumi.Output[dict[str, str]]
    """Namespace of each team, by the team's name. Jobs in it are queued without naming a queue."""
    gate_namespace: pulumi.Output[str]
    """Namespace of the deploy validation; dependents come after its queue."""
    gate_queues: dict[str, pulumi.Output[str]]
    """LocalQueue of the deploy validation of each pool, by the pool's name."""
    gate_priority: pulumi.Output[str]
    """Priority class of the deploy validation."""
    schedule_queue: pulumi.Output[str]
    """LocalQueue of scheduled validations, where the gate has any."""
    schedule_priority: pulumi.Output[str]
    """Priority class of scheduled validations: the lowest there is."""

    def __init__(self, name: str, args: QueueingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        flavors, teams, gate = args["flavors"], args["teams"], args["gate"]
        check(flavors, teams, gate)
        people = [one for team in teams for one in _people(team)]
        made: list[pulumi.Resource] = [self._controller(name, args)]
        sends = args.get("sends")
        if sends:
            leave, image = f"{name}-clusters-leave", args["ready_image"]
            made = [clusters_leave(leave, sends["clusters"], made, image=image, child=self.child)]
        *of_cluster, of_namespaces = kueue.layers(flavors, teams, gate)
        if sends:
            to_others = [
                [sent(row) if row["kind"] == "ClusterQueue" else row for row in each] for each in of_cluster
            ]
            of_cluster = [*connections(sends["clusters"]), *to_others]
        for layer in of_cluster:
            opts_of_layer = self.child(pulumi.ResourceOptions(depends_on=made))
            made = [Manifest(_resource_name(name, body), body, opts_of_layer) for body in layer]
        admitted = [
            *policies(flavors, people, sends=bool(sends)),
            *mutations(flavors, ending=args.get("ending", False)),
        ]
        policed: list[pulumi.Resource] = []
        for body in admitted:
            # A binding with a parameter needs read access to it, and without its policy to all kinds
            # (kubernetes v1.36.2 pkg/registry/admissionregistration, `authorize` of the bindings).
            policy = policed[-1:] if "paramRef" in body["spec"] else []
            opts_of_policy = self.child(pulumi.ResourceOptions(depends_on=policy))
            policed.append(Manifest(_resource_name(name, body), body, opts_of_policy))
        onlookers(name, people, self.child())
        self.spaces, tenancy = self._namespaces(name, args, [*policed, *made])
        created = [
            Manifest(_resource_name(name, body), body, self._inside(body, tenancy)) for body in of_namespaces
        ]
        for body in _claim_templates(flavors, teams):
            claim_template(_resource_name(name, body), body, self._inside(body, tenancy))

        tenants = {team["name"]: team_namespace(team["name"]) for team in teams}
        self.cohort = pulumi.Output.from_input(kueue.COHORT)
        self.team_namespaces = after(pulumi.Output.from_input(tenants), created)
        self.gate_namespace = after(pulumi.Output.from_input(kueue.GATE_NAMESPACE), created)
        self.gate_queues = {pool: pulumi.Output.from_input(gate_queue(pool)) for pool in gate["nodes"]}
        self.gate_priority = pulumi.Output.from_input(kueue.VALIDATION)
        self.schedule_queue = pulumi.Output.from_input(kueue.SCHEDULE_QUEUE)
        self.schedule_priority = pulumi.Output.from_input(kueue.BACKGROUND)
        self.register_declared()

    def _inside(self, body: kueue.Body, tenancy: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        """Options of an object in the namespace of a queue's jobs: it ends with the namespace."""
        space = self.spaces[body["metadata"]["namespace"]]
        return self.child(pulumi.ResourceOptions(depends_on=tenancy, deleted_with=space))

    def _controller(self, name: str, args: QueueingArgs) -> pulumi.Resource:
        sends = args.get("sends")
        fabrics = [flavor["fabric"] for flavor in args["flavors"] if "fabric" in flavor]
        values = kueue_values.values(
            claimed={
                each["resource"]: each["device_class"]
                for each in fabrics
                if "device_class" in each and "resource" in each
            },
            uncounted=[name for each in fabrics for name in each["pod_resources"]],
            manages=sends["stack"] if sends else "",
        )
        flavor = next(body for body in kueue.flavors(args["flavors"]) if body["kind"] == "ResourceFlavor")
        return controller(
            f"{name}-kueue",
            values,
            flavor,
            image=args["ready_image"],
            control_plane=args["control_plane"],
            child=self.child,
        )

    def _namespaces(
        self, name: str, args: QueueingArgs, before: Sequence[pulumi.Resource]
    ) -> tuple[dict[str, pulumi.Resource], list[pulumi.Resource]]:
        """The namespaces by name, and they with all that is in them; they come after `before`."""
        standard = "privileged" if node_access.needs_node(args["flavors"]) else "baseline"
        spaces: dict[str, pulumi.Resource] = {}
        made: list[pulumi.Resource] = []

        def space(
            of: str,
            namespace: str,
            labels: dict[str, str],
            *also: pulumi.Resource,
            notes: dict[str, str] | None = None,
        ) -> None:
            # No properties from what comes before: were it replaced, the namespace would be, with its jobs.
            opts = self.child(pulumi.ResourceOptions(depends_on=[*before, *also]))
            tenant = tenant_namespace(
                of,
                namespace,
                labels,
                opts,
                teams=len(args["teams"]),
                standard=standard,
                annotations=notes,
            )
            made.extend(tenant)
            spaces[namespace] = tenant[0]

        space(f"{name}-smoke", kueue.GATE_NAMESPACE, {})
        own = args.get("before", {})
        for team in args["teams"]:
            namespace = team_namespace(team["name"])
            of_team, labels = f"{name}-{namespace}", {kueue.TEAM_LABEL: namespace}
            before_it = [own[team["name"]]] if team["name"] in own else []
            space(of_team, namespace, labels, *before_it, notes={kueue.TEAM_NAME: team["name"]})
            inside = self.child(pulumi.ResourceOptions(depends_on=spaces[namespace]))
            made.extend(members(of_team, namespace, _people(team), inside))
        return spaces, made


def _claim_templates(flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs]) -> Iterator[kueue.Body]:
    """Templates of the claims of teams' pods, for pools whose devices no device plugin allocates."""
    for pool, fabric in claimed_fabrics({flavor["name"]: flavor for flavor in flavors}):
        for team in teams:
            yield template_body(
                team_template(pool), team_namespace(team["name"]), fabric, {GIVEN_LABEL: GIVEN}
            )


def _people(team: TeamArgs) -> Sequence[SubjectArgs]:
    return team.get("people", [group(team_group(team["name"]))])


def _resource_name(name: str, body: kueue.Body) -> str:
    metadata = body["metadata"]
    parts = [name, body["kind"].lower(), metadata.get("namespace"), metadata["name"]]
    return "-".join(part for part in parts if part)
