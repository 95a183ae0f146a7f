"""Files of a bundle, from the facts of its stacks (pure but for the pages of the package)."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from components import runbooks
from infra.outputs.cluster import StackOutputs
from infra.outputs.jobs import SCHEMA as OF_JOBS
from infra.outputs.jobs import JobOutputs
from infra.places import DOCUMENTS
from policies.evidence.bundle import MANIFEST, manifest
from trainstack.dossier.architecture.access import stores
from trainstack.dossier.architecture.exposure import merged, openings
from trainstack.dossier.architecture.parts import Row, is_counted, name_of, of_type, parts
from trainstack.dossier.document import document
from trainstack.dossier.facts import StackFacts
from trainstack.dossier.html.page import page
from trainstack.handover import exit_plan
from trainstack.handover.imports import imports
from trainstack.handover.texts import rendered

_COLUMNS = ("layer", "part", "type", "name", "id", "owner", "team", "holds_data", "public")
_CONTENTS = (
    (
        ("report.html", "report.json"),
        "architecture, data, cost, GPUs, validation, policies, operation; and its numbers",
    ),
    (("outputs.json", "outputs.schema.json"), "contract for programs: addresses, queues, buckets"),
    (("settings.json",), "every value of the stack with its layer and its reason"),
    (("inventory.csv",), "every resource that exists, with its owner, layer and id"),
    (("evidence/",), "outcomes of every policy, waivers, controls, bill of materials"),
    (("exit/",), "what a destroy removes and what survives it; import files for plain Pulumi and Terraform"),
)
"""Files and folders of a stack, with what is in them."""
_GENERAL = ("growing", "no-capacity", "operate", "stuck-destroy", "evidence", "waivers", "validate")
"""How-to guides for those who operate any stack."""


def bundle(client: str, stacks: Sequence[tuple[StackFacts, Mapping[str, bytes]]]) -> dict[str, bytes]:
    """Content by name, with a manifest: per stack its facts and its evidence."""
    made: dict[str, bytes] = {}
    for facts, evidence in stacks:
        for name, content in _of_stack(facts, evidence):
            made[f"{facts.stack}/{name}"] = content
    made |= _pages(stacks)
    known = [facts for facts, _ in stacks]
    values = {
        "listed": [*_listed(made, [one.stack for one in known])],
        "ways_out": {one.stack for one in known if f"{one.stack}/exit/README.md" in made},
        "runbooks": sum(name.startswith("runbooks/") for name in made),
        "guides": any(name.startswith("guides/") for name in made),
    }
    made["README.md"] = rendered("README.md.j2", client=client, stacks=known, **values).encode()
    made[MANIFEST] = manifest(made)
    return made


def _listed(made: Iterable[str], stacks: Sequence[str]) -> Iterator[tuple[Sequence[str], str, str]]:
    """Files and folders of stacks that are in the bundle: names, content, stacks that have them."""
    files = [*made]
    for names, content in _CONTENTS:
        having = {
            (stack, name)
            for stack in stacks
            for name in names
            if any(one.startswith(f"{stack}/{name}") for one in files)
        }
        found = [one for one in stacks if one in {stack for stack, _ in having}]
        if found:
            there = [name for name in names if name in {one for _, one in having}]
            yield there, content, "all" if len(found) == len(stacks) else ", ".join(found)


def _of_stack(facts: StackFacts, evidence: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    report = document(facts)
    yield "report.html", page(report).encode()
    yield "report.json", _json(report)
    if facts.outputs is not None:
        record = JobOutputs if facts.outputs.get("schema_version") == OF_JOBS else StackOutputs
        yield "outputs.json", _json(facts.outputs)
        yield "outputs.schema.json", _json(record.model_json_schema())
    if facts.loaded is not None:
        rows = [
            {"path": one.path, "value": one.value, "origin": str(one.origin), "reason": one.origin.reason}
            for one in facts.loaded.explain("")
        ]
        yield "settings.json", _json({"stack": facts.stack, "values": rows})
    for name, content in evidence.items():
        yield f"evidence/{name}", content
    if facts.unread is not None:  # without the state, an empty list would be read as "nothing exists"
        return
    yield "inventory.csv", _inventory(facts)
    found = imports(facts.deployed, facts.stack)
    plan = exit_plan.document(facts.deployed, facts.stack, found)
    yield "exit/README.md", rendered("exit.md.j2", plan=plan).encode()
    yield "exit/plan.json", _json(plan)
    yield "exit/pulumi-import.json", found.pulumi().encode()
    yield "exit/imports.tf", found.terraform().encode()


def _inventory(facts: StackFacts) -> bytes:
    """A line for each resource, sorted by layer and name; the owner is its tag, else that of the stack."""
    drawn = parts(facts.deployed, facts.stack)
    holding = {one.urn for one in stores(facts.deployed)}
    public = {one.urn for one in openings(facts.deployed) if one.direction == "in"}
    spec = facts.loaded.spec if facts.loaded else None
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(_COLUMNS)
    rows = []
    for row in filter(is_counted, facts.deployed):
        part = drawn.of.get(row["urn"])
        tags = _tags(row)
        rows.append(
            (
                part.layer.title if part else "",
                part.name if part else "",
                of_type(row["urn"]),
                name_of(row["urn"], facts.stack),
                str(row.get("id") or ""),
                tags.get("owner") or (spec.owner if spec else ""),
                tags.get("team") or _team(part.name if part else ""),
                "yes" if row["urn"] in holding else "",
                "yes" if row["urn"] in public else "",
            )
        )
    writer.writerows([_cell(one) for one in row] for row in sorted(rows))
    return content.getvalue().encode()


def _cell(content: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{content}" if content[:1] in ("=", "+", "-", "@", "\t", "\r") else content


def _tags(row: Row) -> Mapping[str, str]:
    props = merged(row)
    found = {**(props.get("tags") or {}), **(props.get("labels") or {})} if _plain(props) else {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _plain(props: Mapping[str, Any]) -> bool:
    return all(isinstance(props.get(key) or {}, dict) for key in ("tags", "labels"))


def _team(part: str) -> str:
    return part.removeprefix("team-") if part.startswith("team-") else ""


def _pages(stacks: Sequence[tuple[StackFacts, Mapping[str, bytes]]]) -> dict[str, bytes]:
    """Runbooks of the alerts that the stacks can raise, and guides for operating them."""
    folder = DOCUMENTS / runbooks.ROOT
    alerts = {name for facts, _ in stacks for name in alerts_of(facts.resources)}
    made = {
        f"runbooks/{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted(folder.glob("*/*.md"))
        if path.stem in alerts
    }
    guides = [DOCUMENTS / "docs" / "how-to" / f"{name}.md" for name in _GENERAL]
    return made | {f"guides/{path.name}": path.read_bytes() for path in guides if path.is_file()}


def alerts_of(resources: Iterable[Row]) -> set[str]:
    """Names of the alerts that rules in a cluster and alarms of a cloud can raise."""
    found = set[str]()
    for row in resources:
        kind = of_type(row["urn"])
        if kind.endswith(":PrometheusRule"):
            text = json.dumps(row.get("inputs") or {})
            found |= {*re.findall(r'"alert": "(\w+)"', text)}
        elif "larm" in kind or "lertPolicy" in kind:
            text = json.dumps(row.get("inputs") or {})
            found |= {name for name in runbooks.OF_CLOUDS if name in text}
    return found


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
