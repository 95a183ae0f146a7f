"""Write what the providers do on changes of each resource type into the rehearsal's data.

    python -m tools.provider_changes aws BINARY [TYPE ...] | gcp CHECKOUT

CHECKOUT is a git folder of hashicorp/terraform-provider-google-beta, on which Pulumi's provider is built:
`tools/terraform-provider` evaluates the schemas of all types; nothing of it is compiled or copied. BINARY is
Terraform's AWS provider, which is asked for its plans (`tools.provider_plans`) on all types or on those
that are named, such as `aws_lb`: other lines stay. Names are those of the installed SDK, a type's by
its properties. Run it after a change of `pulumi-aws` or `pulumi-gcp` in
pyproject.toml. It reports types without a counterpart, and functions that compare values and have no kind.
"""

import argparse
import collections
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.engine.golang import ROOT
from rehearsal.aws.table import TABLE as AWS
from rehearsal.core.emulation.columns import covers
from rehearsal.core.sdk_types import describe
from rehearsal.gcp.table import TABLE as GCP
from tools import provider_plans
from tools.provider_source import Attribute, Source, all_types, of_source, revision, spellings
from tools.provider_types import matched, tokens

# Property paths with more names are left out: the statements of firewalls contain each other to any depth.
_DEEPEST = 5
_UNWRITTEN = ("timeouts", "tags_all")


class _Facts:
    """The facts of one type by property path of the SDK."""

    def __init__(self, source: Source, described: Mapping[str, Any]) -> None:
        self.objects = described["objects"]
        self.names: dict[str, str] = {}
        self.facts: dict[str, Any] = {"nulls": True} if source.nulls else {}
        self.unnamed: list[str] = []
        self.unkind: collections.Counter[str] = collections.Counter()
        for path, one in self._named(source.attributes, described["inputs"], "", ""):
            self._add(path, one)
        self._conditions(source)

    def _named(
        self, found: Mapping[str, Attribute], fields: Mapping[str, Any], terraform: str, path: str
    ) -> Iterator[tuple[str, Attribute]]:
        for name, one in sorted(found.items()):
            if name in _UNWRITTEN or not one.given:
                continue
            there = f"{terraform}.{name}" if terraform else name
            known = next((spelling for spelling in spellings(name) if spelling in fields), None)
            if known is None:
                self.unnamed.append(there)
                continue
            here = f"{path}.{known}" if path else known
            self.names[there] = here
            yield here, one
            form = fields[known]["type"]
            form = form["list"] if isinstance(form, dict) and "list" in form else form
            inside = isinstance(form, dict) and "object" in form and here.count(".") < _DEEPEST
            if one.inner and inside:
                yield from self._named(one.inner, self.objects[form["object"]], there, here)

    def _add(self, path: str, one: Attribute) -> None:
        if one.replaces != covers(self.facts.get("replace", ()), path):
            self._list("replace", path if one.replaces else f"-{path}")
        for name, holds in (("may", one.may), ("replace_lower", one.lower), ("sets", one.is_set)):
            if holds:
                self._list(name, path)
        # To the framework a computed property with a default is one that goes back to it.
        keeps = one.computed and (one.default is None or "nulls" not in self.facts)
        if keeps:
            self._list("computed", path)
        if one.default or (one.default is not None and "nulls" in self.facts):
            self.facts.setdefault("defaults", {})[path] = one.default
        if one.alike:
            self.facts.setdefault("alike", {}).setdefault(one.alike, []).append(path)
        if one.unknown:
            self.unkind[one.unknown] += 1

    def _list(self, name: str, path: str) -> None:
        self.facts.setdefault(name, []).append(path)

    def _conditions(self, source: Source) -> None:
        lower = sorted({*self._paths(source.lower), *self.facts.pop("replace_lower", ())})
        always = self.facts.get("replace", ())
        may = {*self._paths(source.may), *self.facts.pop("may", ())} - {*lower}
        found = {"replace_lower": lower, "may": sorted(path for path in may if not covers(always, path))}
        self.facts.update({name: paths for name, paths in found.items() if paths})

    def _paths(self, given: Iterable[str]) -> list[str]:
        plain = (".".join(part for part in one.split(".") if not part.isdigit()) for one in given)
        return [self.names[path] for path in plain if path in self.names]


def _of_google(checkout: Path, types: Sequence[str]) -> tuple[dict[str, str], dict[str, Source]]:
    commit, date = revision(checkout)
    head = {"source": "hashicorp/terraform-provider-google-beta", "commit": commit, "date": date}
    return head, {name: of_source(one) for name, one in all_types(checkout, types).items() if one}


_READERS: Mapping[str, Callable[[Path, Sequence[str]], tuple[dict[str, str], dict[str, Source]]]] = {
    "aws": provider_plans.read,
    "gcp": _of_google,
}


def main() -> None:
    """Write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", choices=[*_READERS])
    parser.add_argument("origin", type=Path)
    parser.add_argument("types", nargs="*")
    options = parser.parse_args()
    table = {"aws": AWS, "gcp": GCP}[options.package]
    head, sources = _READERS[options.package](options.origin, options.types)
    kinds: collections.Counter[str] = collections.Counter()
    lines = dict(table.changes.lines) if options.types else {}
    before = {token: table.changes.terraform(token) for token in lines}
    without, unnamed = [], 0
    described = {token: describe(f"{options.package}:{token}") for token in tokens(options.package)}
    given = {name: {each for each, one in of.attributes.items() if one.given} for name, of in sources.items()}
    names = matched(options.package, {token: one for token, one in described.items() if one}, given)
    for token, one in sorted(described.items()):
        name = names.get(token)
        if one is None or name is None:
            without.append(token)
            continue
        if before.get(token, name) != name or (options.types and name not in sources):
            continue
        found = _Facts(sources[name], one)
        kinds += found.unkind
        unnamed += len(found.unnamed)
        facts = {"terraform": name, **found.facts}
        lines[token] = json.dumps(facts, separators=(",", ":"))
    file = table.changes.file
    begin = json.dumps(head)[:-1] + ', "types": {\n'
    rows = (f"{json.dumps(token)}: {lines[token]}" for token in sorted(lines))
    file.write_text(begin + ",\n".join(rows) + "\n}}\n", encoding="utf-8")
    report = [
        *(f"{count:4} values are compared by {name}" for name, count in kinds.most_common()),
        "" if options.types else f"without a counterpart in the source: {', '.join(without) or 'none'}",
        f"{len(lines)} types, {unnamed} properties of the source are not in the SDK",
        f"{file.relative_to(ROOT)}: {file.stat().st_size} bytes",
    ]
    sys.stdout.write("\n".join(report) + "\n")


if __name__ == "__main__":
    main()
