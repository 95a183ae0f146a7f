"""Objects with two owners: each sees what the other wrote, and an update removes or replaces it.

As with the real providers: a create or update changes the object in the cloud, a read shows it whole, and the
next update removes what its own program does not have. An entry that a second resource describes is gone for
both when one of them is deleted.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Generic

from rehearsal.core.emulation.cloud import TableCloud
from rehearsal.core.emulation.entries import Entries, Facet, Key, Relation
from rehearsal.core.emulation.site import S
from rehearsal.core.model import Call, Diff, Properties, Record, RefusalError

_Sides = Iterator[tuple[Relation, Facet]]


class OwnersCloud(TableCloud[S], Generic[S]):
    """Adds to the table-driven cloud what resources of other types know about an object."""

    @abstractmethod
    def relations_of(self, token: str) -> Sequence[Relation]:
        """The relations that a type (with its package) takes part in."""

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """See `TableCloud`; also what others added and the state shows, where the program lists it."""
        found = super().diff(call, id, old_inputs, old_outputs, new)
        site, row = self.site(call, new), self._row(call)
        more = []
        for _, facet in self._sides(call.type):
            path = facet.shows
            if not path or path not in new or any(one.startswith(path) for one in found.changed):
                continue
            there, wanted, listed = (
                facet.entries(site, id, {**old_outputs, **given}).keys() for given in ({}, new, old_inputs)
            )
            if there - wanted - listed:
                more.append(path)
        if not more:
            return found
        forced = [path for path in more if self.replaces(row, path, old_inputs, new)]
        return Diff((*found.changed, *more), (*found.replaces, *forced), found.delete_before_replace)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `TableCloud`; an entry that exists is refused or written anew, as the service does."""
        site = self.site(call, inputs, preview=preview)
        sides = [side for side in self._sides(call.type) if side[1].strict or not side[1].inside]
        sides = [] if preview else sides  # nothing else can be inside of a new resource
        for relation, facet in sides:
            self._check(site, relation, facet, inputs)
        key, outputs = super().create(call, inputs, preview=preview)
        for relation, facet in sides:
            with self._state.transaction():
                own = facet.entries(site, key, outputs)
                if facet.strict:
                    self._remove(site, relation, key, self._beyond(site, relation, facet, key, outputs))
                self._write(site, relation, key, own)
        return key, outputs

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """See `TableCloud`; what the state shows and the program does not list is removed."""
        outputs = super().update(call, id, old_outputs, inputs, preview=preview)
        if preview:
            return outputs
        site = self.site(call, inputs)
        with self._state.transaction():
            for relation, facet in self._sides(call.type):
                if not facet.stated(inputs):
                    continue
                own = facet.entries(site, id, outputs)
                gone = facet.entries(site, id, old_outputs).keys() - own.keys()
                if facet.strict == "always":
                    gone |= self._beyond(site, relation, facet, id, outputs)
                self._remove(site, relation, id, gone)
                self._write(site, relation, id, own)
            return self._with_others(site, id, inputs, outputs)[1]

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `TableCloud`; the entries of the resource are gone for others, too."""
        site = self.site(call, outputs)
        before = self._get(site, id)
        super().delete(call, id, outputs)
        if before is None:
            return
        for relation, facet in self._sides(call.type):
            if facet.removes:
                with self._state.transaction():
                    own = facet.entries(site, id, before.outputs)
                    gone = set(own)
                    if facet.strict == "always":
                        gone |= self._beyond(site, relation, facet, id, before.outputs)
                    self._remove(site, relation, id, gone)

    # -- the parts of a request ------------------------------------------------------------------------

    def _sides(self, token: str) -> _Sides:
        bare = token.partition(":")[2]
        for relation in self.relations_of(token):
            yield from ((relation, facet) for facet in relation.facets if facet.type == bare)

    def _others(
        self, site: S, relation: Relation, id: str, keys: Collection[Key] = ()
    ) -> Iterator[tuple[Record, Facet]]:
        """The resources of a relation besides that of the request, which may have some of these entries."""
        for facet in relation.facets:
            same = facet.type == site.call.type.partition(":")[2]
            for record in site.all(facet.type) if not (same and facet.inside) else ():
                if record.id != id or record.type != site.call.type:
                    yield record, facet

    def _check(self, site: S, relation: Relation, facet: Facet, inputs: Properties) -> None:
        """Refuse an entry that exists, or warn of it."""
        schema, row = self._schemas.resource(site.call.type), self._row(site.call)
        places = {name: value for name, value in site.places.items() if schema and name in schema.inputs}
        own = facet.entries(site, "", {**places, **inputs})
        for record, other in self._others(site, relation, "", own) if own and not facet.strict else ():
            same = own.keys() & other.entries(site, record.id, record.outputs).keys()
            if not same or (record.urn == site.call.urn and record.type == site.call.type):
                continue
            if relation.refused is not None:
                code, message = relation.refused
                owner = f"It belongs to {record.urn}." if record.urn else ""
                raise RefusalError(code, message.format(id=record.id, key=_text(min(same, key=repr))), owner)
            if other.stated(record.inputs) and not (record.type == site.call.type and row.put):
                both = f"{_text(min(same, key=repr))} belongs to {record.urn or record.id} as well"
                why = "the last one that is written counts, and the deletion of one removes it for both"
                site.call.log("warning", f"{relation.name}: {both}: {why}.")

    def _seen(self, site: S, record: Record) -> tuple[Properties, Properties]:
        """See `TableCloud`; with the entries of others, inputs only where the program decides about them."""
        inputs, outputs = super()._seen(site, record)
        return self._with_others(site, record.id, inputs, outputs)

    def _with_others(
        self, site: S, id: str, inputs: Properties, outputs: Properties
    ) -> tuple[Properties, Properties]:
        for relation, facet in self._sides(site.call.type):
            if not facet.shows:
                continue
            own = facet.entries(site, id, outputs)
            others = self._foreign(site, relation, facet, id, outputs)
            more = {key: fields for key, fields in others.items() if key not in own}
            if more:
                if facet.stated(inputs):
                    mine = facet.entries(site, id, inputs)
                    inputs = facet.shown(site, id, inputs, {**mine, **more})
                outputs = facet.shown(site, id, outputs, {**own, **more})
        return inputs, outputs

    def _foreign(self, site: S, relation: Relation, facet: Facet, id: str, outputs: Properties) -> Entries:
        """The entries that others describe within the range of a resource."""
        return {
            key: fields
            for record, other in self._others(site, relation, id)
            for key, fields in other.entries(site, record.id, record.outputs).items()
            if facet.covers(site, id, outputs, key)
        }

    def _beyond(self, site: S, relation: Relation, facet: Facet, id: str, outputs: Properties) -> set[Key]:
        """Keys of what others describe within the range of a resource, and it does not."""
        foreign = self._foreign(site, relation, facet, id, outputs)
        return set(foreign.keys() - facet.entries(site, id, outputs).keys())

    def _remove(self, site: S, relation: Relation, id: str, keys: set[Key]) -> None:
        """Remove entries from all other resources; one that is nothing else is gone."""
        for record, facet in list(self._others(site, relation, id, keys)) if keys else ():
            entries = facet.entries(site, record.id, record.outputs)
            if not keys & entries.keys():
                continue
            if facet.removable:
                self._state.remove(record)
                continue
            rest = {key: fields for key, fields in entries.items() if key not in keys}
            self._rewrite(site, record, facet, rest)

    def _write(self, site: S, relation: Relation, id: str, own: Entries) -> None:
        """Give every other resource of these entries their new content."""
        for record, facet in list(self._others(site, relation, id, own)) if own else ():
            entries = facet.entries(site, record.id, record.outputs)
            changed = {
                key: {**entries[key], **{name: own[key][name] for name in entries[key] if name in own[key]}}
                for key in entries.keys() & own.keys()
            }
            if any(entries[key] != fields for key, fields in changed.items()):
                self._rewrite(site, record, facet, {**entries, **changed})

    def _rewrite(self, site: S, record: Record, facet: Facet, entries: Entries) -> None:
        """Store a resource with other entries; its inputs change where the program has the property."""
        stated = facet.stated(record.inputs)
        inputs = facet.shown(site, record.id, record.inputs, entries) if stated else record.inputs
        outputs = facet.shown(site, record.id, record.outputs, entries)
        self._state.replace(record, inputs=inputs, outputs=outputs)


def _text(key: Key) -> str:
    return ", ".join(str(part) for part in key if part is not None)
