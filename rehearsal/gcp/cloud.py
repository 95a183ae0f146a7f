"""The emulated Google Cloud: projects, locations, labels and errors."""

import re
from collections.abc import Sequence
from typing import Any

from infra.discovery import gathered
from rehearsal.core.emulation.entries import Relation
from rehearsal.core.emulation.functions import asking
from rehearsal.core.emulation.owners import OwnersCloud
from rehearsal.core.emulation.refusals import refuse_protected
from rehearsal.core.emulation.shape import labels_over
from rehearsal.core.emulation.table import Row
from rehearsal.core.model import (
    UNKNOWN,
    Call,
    CheckFailure,
    Properties,
    ProviderInstance,
    Record,
    RefusalError,
)
from rehearsal.core.properties import decoded
from rehearsal.gcp import functions, implicit, owners, references
from rehearsal.gcp.rules import BOOK
from rehearsal.gcp.site import MISSING, Site, places_of, project_of, site_of
from rehearsal.gcp.table import TABLE

_LABELLED = "goog-pulumi-provisioned"
# A provider setting of most types: PREVENT refuses the deletion, ABANDON only removes it from the state.
_POLICY = "deletionPolicy"


class EmulatedGcp(OwnersCloud[Site]):
    """Serves every gcp provider of every engine; thread-safe."""

    table, link, labels = TABLE, "selfLink", ("effectiveLabels", "pulumiLabels")
    in_place = frozenset({"labels"})
    foreknown = frozenset({"project", "region", "zone", "location", *labels})
    missing, rejected = MISSING, "badRequest"
    exists = ("alreadyExists", "The resource '{id}' already exists")
    book, hooks = BOOK, gathered("rehearsal.gcp.services", "HOOKS")
    forms = (
        (re.compile(r"(url|uri|link)$", re.IGNORECASE), "https://{service}.googleapis.com/v1/{id}"),
        (re.compile(r"(email)$", re.IGNORECASE), "{kind}-{hex10}@{project}.iam.gserviceaccount.com"),
        (re.compile(r"(ipAddress|^address)$"), "{publicip}"),
        (re.compile(r"(time|timestamp)$", re.IGNORECASE), "{now}"),
        (re.compile(r"(fingerprint|etag)$", re.IGNORECASE), "{base64}"),
    )

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """Accepts any configuration: resources may set project and location themselves."""
        return []

    def site(self, call: Call, given: Properties, *, preview: bool = False) -> Site:
        """See `TableCloud`."""
        return site_of(self._state, call, given, preview=preview)

    def labels_of(self, call: Call, inputs: Properties) -> dict[str, Any]:
        """See `TableCloud`."""
        config = call.instance.config
        marked = decoded(config.get("addPulumiAttributionLabel")) is True
        shared = labels_over({_LABELLED: "true"} if marked else {}, decoded(config.get("defaultLabels")))
        return labels_over(shared, inputs.get("labels"))

    def resolve(self, site: Site, row: Row, inputs: Properties) -> dict[str, Record]:
        """See `TableCloud`."""
        return references.resolve(site, row, inputs)

    def misplaced(self, call: Call, row: Row, inputs: Properties) -> list[CheckFailure]:
        """Error for a resource whose project, region or zone is unknown."""
        config, failures = call.instance.config, []
        schema = self._schemas.resource(call.type)
        fields = schema.inputs if schema else {}
        if UNKNOWN in (inputs.get("project"), config.get("project"), inputs.get(row.place)):
            return []
        if "project" in fields and not project_of(config, inputs):
            fix = "set it here or in the stack's configuration (gcp:project)"
            failures.append(CheckFailure("project", f"project: required field is not set; {fix}"))
        if row.place in fields and not places_of(config, inputs).get(row.place):
            where = "zone" if row.place == "zone" else "'region' or 'zone'"
            reason = f"Cannot determine {row.place}: set in this resource, or set provider-level {where}."
            failures.append(CheckFailure(row.place, reason))
        return failures

    def relations_of(self, token: str) -> Sequence[Relation]:
        """See `OwnersCloud`."""
        return owners.relations_of(token)

    def protect(self, row: Row, record: Record) -> None:
        """See `TableCloud`."""
        if record.outputs.get(_POLICY) == "PREVENT":
            message = f'cannot destroy {record.id} without setting deletion_policy="DELETE"'
            raise RefusalError("deletionPolicy", message, "Set it and run up before destroy.")
        refuse_protected(row, record)

    def invoke(self, instance: ProviderInstance, token: str, args: Properties) -> Properties:
        """A function such as `gcp:compute/getZones:getZones`."""
        call = asking(self.package, token, instance.config)
        return functions.answer_to(site_of(self._state, call, args), args)

    def settings_for(self, record: Record) -> Properties:
        """Provider settings with the resource's own project and location."""
        return {name: record.outputs.get(name) for name in ("project", "region", "zone")}

    def _get(self, site: Site, id: str) -> Record | None:
        """Also under a short form of the id, and what a project has from the beginning."""
        found = super()._get(site, id)
        if found is None:
            whole = implicit.canonical(self._row(site.call), site, id)
            found = super()._get(site, whole) if whole != id else None
            found = found or implicit.find(site, site.call.type, whole)
        return found

    def _compute(self, site: Site, row: Row, inputs: Properties) -> tuple[str, Properties]:
        key, outputs = super()._compute(site, row, inputs)
        return key + owners.suffix(row.token, inputs), outputs
