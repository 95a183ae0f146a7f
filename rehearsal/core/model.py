"""Types shared by the gRPC provider, the clouds and the state.

Property values are plain JSON values (dict, list, str, bool, int or float, None) or `UNKNOWN`.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Properties = dict[str, Any]
# Fixes in refusals for want of machines and of quota.
TRY_AGAIN = "Run up again, or ask for another zone, machine type or market."
RAISE_QUOTA = "Ask for a higher quota, or remove what is not needed."


class _Unknown:
    """A value that a preview cannot know yet; falsy, and equal only to itself."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


@dataclass(frozen=True)
class Record:
    """One resource that exists; ids are unique within a `scope`: an account and region, or a cluster."""

    key: int
    package: str
    type: str
    scope: str
    id: str
    urn: str
    name: str
    inputs: Properties
    outputs: Properties


@dataclass(frozen=True)
class Reference:
    """`user` holds, at property `path`, an identifier of the resource `used`."""

    user: Record
    used: Record
    path: str


class RefusalError(Exception):
    """A refusal of the cloud: code of the service, message and fix."""

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        self.code, self.message, self.fix = code, message, fix
        super().__init__(f"{code}: {message}" + (f" {fix}" if fix else ""))


class InitFailedError(Exception):
    """The object exists but did not become ready: the engine keeps it in its state and fails the update.

    `inputs` are those that a read found; None keeps those of the engine.
    """

    def __init__(
        self, id: str, outputs: Properties, reasons: list[str], inputs: Properties | None = None
    ) -> None:
        self.id, self.outputs, self.reasons, self.inputs = id, outputs, reasons, inputs
        super().__init__("; ".join(reasons))


@dataclass(frozen=True)
class ProviderInstance:
    """One configured provider (default or explicit) of one engine."""

    package: str
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pinned(self) -> str:
        """The version that the program's SDK or its `version` option asks for; empty: any."""
        return str(self.config.get("version") or "")


@dataclass(frozen=True)
class Call:
    """One request of the engine."""

    instance: ProviderInstance
    type: str
    urn: str
    cancelled: threading.Event
    log: Callable[[str, str], None]  # (severity: debug|info|status|warning|error, message)
    timeout_s: float | None = None
    random_seed: bytes = b""
    remembered: Properties = field(default_factory=dict)
    """Outputs in the state of the engine, for a read; empty for an import."""

    @property
    def name(self) -> str:
        """The logical name: the last part of the URN."""
        return self.urn.rsplit("::", 1)[-1]


@dataclass(frozen=True)
class CheckFailure:
    """One property that is refused before anything is created."""

    property: str
    reason: str
    unknown: bool = False
    """The installed SDK has no property of this name."""


@dataclass(frozen=True)
class Diff:
    """Effect of an update: changed property paths, those that force a replacement, and its order."""

    changed: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    delete_before_replace: bool = False


@dataclass(frozen=True)
class FaultResponses:
    """Responses of a service and its provider to injected faults."""

    retries: int
    """After so many tries the provider gives up."""
    throttled: tuple[str, str]
    """Code and message of the service for too many requests."""
    transient: tuple[str, str]
    """Code and message of the service for a 5xx error."""
    expired: tuple[str, str]
    """Code and message of the service for a login that has ended."""
    no_capacity: Callable[[str, str], RefusalError]
    """Type token and name of a resource -> refusal for want of machines."""
    over_quota: Callable[[str, str], RefusalError]
    """Type token and name of a resource -> refusal because the account may not have one more."""


@dataclass(frozen=True)
class Package:
    """Facts about an emulated package that the shared code needs.

    Classes are given as `module:class` and imported on first use: the daemon starts without the clouds.
    """

    cloud: str
    real_cloud: str = ""
    """Replaces `cloud` in a home with a real control plane."""
    real_clusters: str = ""
    """Wrapper of a cloud whose clusters get the real control plane of the home."""
    limits: str = ""
    """Wrapper with quotas and scarce machines; only packages with accounts have one."""
    existing: str = ""
    """Module that seeds resources which no program made."""
    environment: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Provider setting -> environment variables from which the real provider takes it by default."""
    bridged: bool = True
    """Built with pulumi-terraform-bridge: outputs hold Terraform's attribute `id` as well, the only place
    where policy packs find an id. Source: "Resource IDs" in the bridge's docs; pulumi-kubernetes has none."""
    faults: FaultResponses | None = None
    """None: a helper package, whose resources live in the engine's state alone and have no faults."""


class EmulatedCloud(Protocol):
    """One emulated package; an instance serves every engine, so it must be thread-safe.

    `create` and `update` are called with `preview=True` during a preview: nothing may change then,
    and outputs that only the cloud would know are `UNKNOWN`.
    Refusals raise `RefusalError`; a resource that was created but is not ready raises `InitFailedError`.
    """

    package: str
    version: str

    def canonical(self, token: str) -> str:
        """The current token for a deprecated name of a type or function; else the token itself."""
        return token

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """Problems of a provider's own configuration."""

    def replacing_settings(self, old: Properties, new: Properties) -> tuple[str, ...]:
        """Settings of a provider whose change replaces every resource of that provider."""

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """The inputs with the provider's defaults (auto-naming included), and their problems."""

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """Differences of `new`; the caller has already reverted ignored changes."""

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """The id (empty in a preview) and outputs of a new resource."""

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """(inputs, outputs) of the resource with this `id`, or None."""

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """The outputs after the update."""

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """Delete the resource with this `id`; does nothing when it is already gone."""

    def invoke(self, instance: ProviderInstance, token: str, args: Properties) -> Properties:
        """The result of a function such as `aws:index/getAvailabilityZones:getAvailabilityZones`."""

    def settings_for(self, record: Record) -> Properties:
        """The configuration of a provider that reaches the account, project or cluster of a resource."""
        return {}
