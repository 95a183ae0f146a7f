"""The emulated AWS cloud: accounts, names, tags and errors of AWS."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from infra.discovery import gathered
from rehearsal.aws import desired_states, functions, implicit, owners, references
from rehearsal.aws.rules import BOOK
from rehearsal.aws.site import MISSING, Site, site_of
from rehearsal.aws.table import TABLE, canonical
from rehearsal.core.emulation.entries import Facet, Key, Relation
from rehearsal.core.emulation.functions import asking
from rehearsal.core.emulation.owners import OwnersCloud
from rehearsal.core.emulation.shape import labels_over
from rehearsal.core.emulation.table import Row
from rehearsal.core.model import UNKNOWN, Call, CheckFailure, Properties, ProviderInstance, Record
from rehearsal.core.properties import decoded
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State

_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


class EmulatedAws(OwnersCloud[Site]):
    """Serves every aws provider of every engine; thread-safe."""

    table, link, labels = TABLE, "arn", ("tagsAll",)
    in_place = frozenset({"tags"})
    foreknown = frozenset({"tagsAll", "region"})
    missing, rejected = MISSING, "ValidationException"
    exists = ("ResourceAlreadyExists", "{type} {id} exists already in {scope}.")
    book, hooks = BOOK, gathered("rehearsal.aws.services", "HOOKS")
    forms = (
        (re.compile(r"arn$", re.IGNORECASE), "arn:aws:{service}:{region}:{account}:{kind}/{kind}-{hex10}"),
        (
            re.compile(r"(url|uri|invokeUrl)$", re.IGNORECASE),
            "https://{kind}-{hex10}.{service}.{region}.amazonaws.com",
        ),
        (
            re.compile(r"(dns|dnsName|domain|domainName|endpoint|address|fqdn|host)$", re.IGNORECASE),
            "{kind}-{hex10}.{service}.{region}.amazonaws.com",
        ),
        (re.compile(r"zoneId$"), "Z{upper13}"),
        (re.compile(r"(date|time|createdAt|updatedAt)$", re.IGNORECASE), "{now}"),
    )

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        super().__init__(state, schemas, home)
        implicit.complete(state)

    def canonical(self, token: str) -> str:
        """See `EmulatedCloud`."""
        return canonical(token)

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """Require a region, like the real provider; credentials are not needed."""
        region = config.get("region")
        if region is UNKNOWN:
            return []
        if not region:
            fix = "set aws:region in the stack's configuration or AWS_REGION"
            return [CheckFailure("region", f"Missing region configuration: {fix}")]
        if not isinstance(region, str) or not _REGION.fullmatch(region):
            return [CheckFailure("region", f"Invalid AWS Region: {region}")]
        return []

    def site(self, call: Call, given: Properties, *, preview: bool = False) -> Site:
        """See `TableCloud`."""
        return site_of(self._state, call, given, preview=preview)

    def labels_of(self, call: Call, inputs: Properties) -> dict[str, Any]:
        """See `TableCloud`."""
        defaults = decoded(call.instance.config.get("defaultTags"))
        shared = decoded(defaults.get("tags")) if isinstance(defaults, dict) else None
        return labels_over(shared, inputs.get("tags"))

    def resolve(self, site: Site, row: Row, inputs: Properties) -> dict[str, Record]:
        """See `TableCloud`."""
        return references.resolve(site, row, inputs)

    def identifiers(self, row: Row, id: str, outputs: Properties) -> set[str]:
        """Names, too; a name in another region does not conflict."""
        name = row.display_name(outputs)
        return super().identifiers(row, id, outputs) | ({name} if name else set())

    def relations_of(self, token: str) -> Sequence[Relation]:
        """See `OwnersCloud`."""
        return owners.relations_of(token)

    def _others(
        self, site: Site, relation: Relation, id: str, keys: Collection[Key] = ()
    ) -> Iterator[tuple[Record, Facet]]:
        yield from super()._others(site, relation, id, keys)
        yield from owners.tagged(site, relation, keys)

    def replaces(self, row: Row, path: str, old: Properties, new: Properties) -> bool:
        """A change of the region replaces every resource, one of a create-only property that of a type."""
        if path == "desiredState" and row.token.endswith(desired_states.RESOURCE):
            return desired_states.replaced(new.get("typeName"), old, new)
        return path == "region" or super().replaces(row, path, old, new)

    def invoke(self, instance: ProviderInstance, token: str, args: Properties) -> Properties:
        """A function such as `aws:index/getAvailabilityZones:getAvailabilityZones`."""
        call = asking(self.package, canonical(token), instance.config)
        return functions.answer_to(site_of(self._state, call, args), args)

    def settings_for(self, record: Record) -> Properties:
        """A provider of the resource's region that assumes a role of its account."""
        account, _, region = record.scope.partition("/")
        roles = [{"roleArn": f"arn:aws:iam::{account}:role/drift"}]
        return {"region": record.outputs.get("region") or region, "assumeRoles": roles}
