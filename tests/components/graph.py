"""Components run against a recorder that also remembers what waits for what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import MockResourceArgs, set_mocks
from pulumi.runtime.mocks import MockMonitor
from typing_extensions import override

from tests.components.recorder import Recorder, until_settled


@dataclass(frozen=True)
class Registered:
    """A resource as the engine would keep it: the request, and what came out."""

    request: Any
    urn: str
    id: str
    state: Mapping[str, Any]


class _Monitor(MockMonitor):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.requests: dict[str, Any] = {}
        self.edges: dict[str, set[str]] = {}
        self.ignored: dict[str, list[str]] = {}
        self.delete_before_replace: dict[str, bool] = {}
        self.registered: list[Registered] = []

    @override
    def RegisterResource(self, request: Any) -> Any:
        key = _key(f"::::{request.type}::{request.name}")
        self.requests[key] = request
        self.edges[key] = {_key(urn) for urn in request.dependencies}
        self.ignored[key] = list(request.ignoreChanges)
        self.delete_before_replace[key] = request.deleteBeforeReplace
        register: Callable[[Any], Any] = super().RegisterResource
        answer = register(request)
        made = self.resources.get(answer.urn)  # the stack itself has no state
        if made is not None:
            self.registered.append(Registered(request, made.urn, made.id, made.state))
        return answer


def _key(urn: str) -> str:
    """`NodeGroup:dev-aws-system` for a URN: resources of one name differ in their class."""
    *_, qualified_type, name = urn.split("::")
    return f"{qualified_type.rsplit(':', 1)[-1]}:{name}"


@dataclass(frozen=True)
class Graph:
    """What was asked for, what came out, and the direct dependencies of each resource.

    Resources are called by class and logical name, such as `NodeGroup:dev-aws-system`.
    """

    cloud: Recorder
    outputs: Mapping[str, Any]
    edges: Mapping[str, set[str]]
    ignored: Mapping[str, list[str]]
    delete_before_replace: Mapping[str, bool]
    requests: Mapping[str, Any]
    """The engine's requests themselves, for options that need no name here."""
    registered: Sequence[Registered] = field(default=(), repr=False)

    def waits_for(self, name: str) -> set[str]:
        """Everything that exists before `name` and is destroyed after it."""
        found: set[str] = set()
        todo = set(self.edges[name])
        while todo:
            found |= todo
            todo = {far for near in todo for far in self.edges.get(near, set())} - found
        return found

    def created_after(self, name: str) -> set[str]:
        """Everything that exists before `name`: what it waits for, and what the components around it do."""
        found = set[str]()
        while name in self.requests:
            found |= self.waits_for(name)
            name = _key(self.requests[name].parent) if self.requests[name].parent else ""
        return found

    def find(self, type_ending: str, name_ending: str = "") -> Mapping[str, Any]:
        """The properties of the only resource of that class (`eks/Cluster` style) and end of name."""
        found = [
            asked
            for asked in self.cloud.asked
            if asked.type.endswith(f":{type_ending}") and asked.name.endswith(name_ending)
        ]
        assert len(found) == 1, [asked.name for asked in found]
        return found[0].properties

    def all(self, type_ending: str) -> dict[str, Mapping[str, Any]]:
        """The properties of every resource of that class by logical name."""
        return {
            asked.name: asked.properties
            for asked in self.cloud.asked
            if asked.type.endswith(f":{type_ending}")
        }


Program = Callable[[], Mapping[str, pulumi.Input[Any]]]
Computed = Mapping[str, Callable[[MockResourceArgs], Mapping[str, object]]]


def deploy_graph(
    program: Program,
    computed: Computed | None = None,
    answers: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Graph:
    """Run `program` with mocks, wait for all of it, and return what happened.

    `answers`: further ones of functions, by token.
    """
    recorder = Recorder(computed or {})
    recorder.answers = {**recorder.answers, **(answers or {})}
    monitor = _Monitor(recorder)
    set_mocks(recorder, project="trainstack", stack="dev", preview=False, monitor=monitor)
    outputs: dict[str, Any] = {}

    until_settled(lambda: pulumi.Output.all(**program()).apply(outputs.update))
    return Graph(
        recorder,
        outputs,
        monitor.edges,
        monitor.ignored,
        monitor.delete_before_replace,
        monitor.requests,
        monitor.registered,
    )
