"""The architecture as a document (pure)."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from trainstack.dossier.architecture.access import DataStore, grants, stores
from trainstack.dossier.architecture.exposure import InternetWay, openings
from trainstack.dossier.architecture.layers import layers
from trainstack.dossier.architecture.parts import DrawnParts, name_of, parts
from trainstack.dossier.facts import StackFacts


def document(facts: StackFacts) -> dict[str, Any]:
    """Layers with their parts, what each layer needs, ways to the internet, stores, rights on them."""
    found = parts(facts.resources, facts.stack)
    ways, kept = openings(facts.resources), stores(facts.resources)
    names = {one.urn: name_of(one.urn, facts.stack) for one in kept}
    by_who: dict[str, list[dict[str, Any]]] = {}
    for grant in grants(facts.resources, kept):
        row = {"store": names[grant.store], "rights": [*grant.rights], "folders": [*grant.scopes]}
        by_who.setdefault(grant.who, []).append(row)
    return {
        "source": facts.source,
        "why": facts.why,
        "resources": sum(len(one.urns) for one in found.rows),
        "parts": len(found.rows),
        "layers": [*_layers(found, ways, kept)],
        "needs": [*_needs(facts, found)],
        "openings": [
            {
                "part": found.name_of(one.urn),
                "direction": one.direction,
                "what": one.what,
                "peers": [*one.peers],
                "open_to_all": one.open,
            }
            for one in ways
        ],
        "stores": [
            {
                "name": names[one.urn],
                "kind": one.kind,
                "own_key": one.own_key,
                "protected": one.protected,
                "stays_after_destroy": one.kept,
                "reached_from": [*one.reached_from],
            }
            for one in kept
        ],
        "identities": [{"who": who, "stores": rows} for who, rows in sorted(by_who.items())],
    }


def _layers(found: DrawnParts, ways: list[InternetWay], kept: list[DataStore]) -> Iterator[dict[str, Any]]:
    public = {found.of[one.urn].key for one in ways if one.direction == "in" and one.urn in found.of}
    holding = {found.of[one.urn].key for one in kept if one.urn in found.of}
    for layer in layers().rows:
        rows = [one for one in found.rows if one.layer is layer]
        if rows:
            yield {
                "key": layer.key,
                "title": layer.title,
                "resources": sum(len(one.urns) for one in rows),
                "parts": [
                    {
                        "name": one.name,
                        "kind": one.kind,
                        "resources": len(one.urns),
                        "public": one.key in public,
                        "holds_data": one.key in holding,
                        "joined": sorted(one.members),
                        "types": dict(sorted(one.types.items())),
                    }
                    for one in rows
                ],
            }


def _needs(facts: StackFacts, found: DrawnParts) -> Iterator[dict[str, Any]]:
    """Dependencies between layers, in the order of the drawing."""
    order = [row.key for row in layers().rows]
    titles = {row.key: row.title for row in layers().rows}
    of_layer = {one.key: one.layer.key for one in found.rows}
    counts: Counter[tuple[str, str]] = Counter()
    for (near, far), count in found.links(facts.resources).items():
        counts[of_layer[near], of_layer[far]] += count
    for near, far in sorted(counts, key=lambda pair: tuple(map(order.index, pair))):
        if near != far:
            yield {"layer": titles[near], "needs": titles[far], "dependencies": counts[near, far]}
