"""Queues with quotas, fair share and priorities, with Kueue."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.manifest import Manifest
from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.people import SubjectArgs, group
from components.kubernetes.queueing import kueue, kueue_values, node_access
from components.kubernetes.queueing.admission import policies
from components.kubernetes.queueing.controller import controller
from components.kubernetes.queueing.defaults import mutations
from components.kubernetes.queueing.quota_rules import check
from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs
from components.kubernetes.queueing.tenancy import members, onlookers, tenant_namespace
from components.ordering import after
from infra.naming import gate_queue, team_group, team_namespace


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


class Queueing(Component):
    """Kueue, one flavor a pool, and a namespace with a guaranteed, lendable share for every team.

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
        admitted = [*policies(flavors, people), *mutations(flavors, ending=args.get("ending", False))]
        policed = [Manifest(_resource_name(name, body), body, self.child()) for body in admitted]
        # A namespace whose pods a policy restricts comes after the policy.
        reaching = node_access.needs_node(flavors)
        spaces = self._namespaces(
            name, teams, policed if reaching else [], "privileged" if reaching else "baseline"
        )
        onlookers(name, people, self.child())
        created: list[pulumi.Resource] = [self._controller(name, args), *spaces]
        for layer in kueue.layers(flavors, teams, gate):
            opts_of_layer = self.child(pulumi.ResourceOptions(depends_on=created))
            created = [Manifest(_resource_name(name, body), body, opts_of_layer) for body in layer]

        tenants = {team["name"]: team_namespace(team["name"]) for team in teams}
        self.cohort = pulumi.Output.from_input(kueue.COHORT)
        self.team_namespaces = after(pulumi.Output.from_input(tenants), created)
        self.gate_namespace = after(pulumi.Output.from_input(kueue.GATE_NAMESPACE), created)
        self.gate_queues = {pool: pulumi.Output.from_input(gate_queue(pool)) for pool in gate["nodes"]}
        self.gate_priority = pulumi.Output.from_input(kueue.VALIDATION)
        self.schedule_queue = pulumi.Output.from_input(kueue.SCHEDULE_QUEUE)
        self.schedule_priority = pulumi.Output.from_input(kueue.BACKGROUND)
        self.register_declared()

    def _controller(self, name: str, args: QueueingArgs) -> pulumi.Resource:
        fabrics = [flavor["fabric"] for flavor in args["flavors"] if "fabric" in flavor]
        values = kueue_values.values(
            claimed={
                each["resource"]: each["device_class"]
                for each in fabrics
                if "device_class" in each and "resource" in each
            },
            uncounted=[name for each in fabrics for name in each["pod_resources"]],
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
        self, name: str, teams: Sequence[TeamArgs], policed: Sequence[pulumi.Resource], standard: str
    ) -> list[pulumi.Resource]:
        opts = self.child(pulumi.ResourceOptions(depends_on=policed))
        made = tenant_namespace(f"{name}-smoke", kueue.GATE_NAMESPACE, {}, opts, standard=standard)
        for team in teams:
            namespace = team_namespace(team["name"])
            of_team, labels = f"{name}-{namespace}", {kueue.TEAM_LABEL: namespace}
            tenant = tenant_namespace(of_team, namespace, labels, opts, standard=standard)
            inside = self.child(pulumi.ResourceOptions(depends_on=tenant[0]))
            made += [*tenant, *members(of_team, namespace, _people(team), inside)]
        return made


def _people(team: TeamArgs) -> Sequence[SubjectArgs]:
    return team.get("people", [group(team_group(team["name"]))])


def _resource_name(name: str, body: kueue.Body) -> str:
    metadata = body["metadata"]
    parts = [name, body["kind"].lower(), metadata.get("namespace"), metadata["name"]]
    return "-".join(part for part in parts if part)
