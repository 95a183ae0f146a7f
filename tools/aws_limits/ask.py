"""Write the limits of values that Terraform's AWS provider checks into the rehearsal's data.

    python -m tools.aws_limits.ask ask BINARY CACHE [TYPE ...]
    python -m tools.aws_limits.ask write BINARY CACHE ...

`ask` asks the provider to validate configurations of every type, or of those that are named (`aws_lb`),
without credentials and without a cloud; each type is one line of CACHE, and a type that is there is not asked
again. `write` gives the properties the names of the installed SDK, adds what newer sources accept
(`newer_values`), leaves out what a rule of the rehearsal judges already, and reports types without a
counterpart. Run both after a change of the provider, `write` after one of `pulumi-aws` or botocore.
"""

import argparse
import collections
import datetime
import importlib.metadata
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from infra.engine.golang import ROOT
from rehearsal.aws.provider import VALUES
from rehearsal.core.sdk_types import describe
from tools.aws_limits.cross import Cross, counts, cross
from tools.aws_limits.leaves import Leaf, about, configuration, lanes, leaves
from tools.aws_limits.naming import Naming
from tools.aws_limits.values import BETWEEN, Asking, Facts, number, text
from tools.aws_values import limited
from tools.provider_protocol import Fields, TerraformProvider, attributes, blocks, running
from tools.provider_types import matched, tokens

_FORMS = {"text": text, "number": number}


def _ask(
    provider: TerraformProvider, kind: str, lane: list[Leaf], limits: Cross
) -> Iterator[tuple[Leaf, Facts]]:
    """The facts of the leaves of a lane: one request for the next candidate of each."""
    block = provider.schemas[kind]
    asking: dict[Leaf, tuple[Asking, Any]] = {}
    for leaf in lane:
        if leaf.form in _FORMS:
            generator = _FORMS[leaf.form]()
            asking[leaf] = generator, next(generator)
    present = {leaf.path[:size] for leaf in asking for size in range(1, len(leaf.path))}
    beside = limits.needed({leaf.path for leaf in asking})
    blank = {
        (one.summary, one.detail) for one in provider.validate(kind, configuration(block, beside, present))
    }
    while asking:
        values = {leaf.path: [value] if leaf.many else value for leaf, (_, value) in asking.items()}
        found = provider.validate(kind, configuration(block, {**limits.needed(values), **values}))
        for leaf, (generator, _) in [*asking.items()]:
            errors = [one for one in about(leaf, found) if (one.summary, one.detail) not in blank]
            said = BETWEEN.join(f"{one.summary} {one.detail}" for one in errors)
            try:
                asking[leaf] = generator, generator.send(said)
            except StopIteration as end:
                del asking[leaf]
                yield leaf, end.value


def of_type(provider: TerraformProvider, kind: str) -> dict[str, Any]:
    """The facts of a type: by kind and path in Terraform's names, and across properties."""
    block = provider.schemas[kind]
    found = leaves(block)
    limits = cross(provider, kind, block, found)
    facts: dict[str, Any] = {}
    for lane in lanes(found, limits.apart()):
        for leaf, those in _ask(provider, kind, lane, limits):
            path = ".".join(leaf.path) + ("[]" if leaf.many else "")
            for fact, value in those.items():
                facts.setdefault(fact, {})[path] = value
    items = counts(provider, kind, block, found)
    return {**facts, **({"items": items} if items else {}), **limits.plain()}


def ask(binary: Path, cache: Path, types: list[str]) -> None:
    """Add a line for each type to a cache."""
    known = {json.loads(line)["type"] for line in cache.open()} if cache.exists() else set()
    left: list[str] | None = None
    while left is None or left:
        with running(binary) as provider, cache.open("a") as file:
            left = sorted({*(types or provider.schemas)} - known) if left is None else left
            while left:
                kind, began = left.pop(0), time.monotonic()
                try:
                    facts = of_type(provider, kind)
                except grpc.RpcError as error:  # it ended: the next one begins behind this type
                    sys.stderr.write(f"{kind}: the provider ended: {error.code()}\n")
                    break
                spent = time.monotonic() - began
                file.write(json.dumps({"type": kind, "s": round(spent, 2), **facts}) + "\n")
                file.flush()


def write(binary: Path, caches: list[Path]) -> None:
    """Write the data file."""
    found = {row.pop("type"): row for cache in caches for line in cache.open() if (row := json.loads(line))}
    with running(binary) as provider:
        given = {name: _given(block) for name, block in provider.schemas.items()}
    sdk = {token: one for token in tokens("aws") if (one := describe(f"aws:{token}"))}
    names = matched("aws", sdk, given)
    judged = collections.defaultdict(set)
    for token, path in limited():
        judged[token].add(path.replace("[].", "."))
    rows = {}
    for token, name in sorted(names.items()):
        facts = Naming(token, name, frozenset(judged[token])).facts(found.get(name, {}), given[name])
        if facts:
            rows[token] = {"terraform": name, **facts}
    version = re.search(r"_v([\d.]+)", binary.name)
    day = datetime.datetime.fromtimestamp(binary.stat().st_mtime, datetime.UTC).date().isoformat()
    botocore = importlib.metadata.version("botocore")
    head = {"source": f"hashicorp/terraform-provider-aws and botocore {botocore}"}
    head |= {"commit": f"v{version and version[1]}", "date": day}
    lines = (f"{json.dumps(token)}: {json.dumps(row, separators=(',', ':'))}" for token, row in rows.items())
    text = json.dumps(head)[:-1] + ', "types": {\n' + ",\n".join(lines) + "\n}}\n"
    whole = VALUES.with_suffix(".new")
    whole.write_text(text, encoding="utf-8")
    whole.replace(VALUES)
    without = sorted(set(sdk) - set(names))
    sys.stdout.write(f"without a counterpart: {', '.join(without)}\n")
    unused = sorted(set(given) - set(names.values()))
    sys.stdout.write(f"types of the provider that the SDK lacks: {', '.join(unused)}\n")
    counts = f"{len(names)} of {len(sdk)} types have a counterpart, {len(rows)} have facts"
    sys.stdout.write(f"{counts}; {VALUES.relative_to(ROOT)}: {len(text)} bytes\n")


def _given(block: Fields) -> set[str]:
    found = {name for name, _, required, optional, _ in attributes(block) if required or optional}
    return (found | {name for name, *_ in blocks(block)}) - {"id", "tags_all", "timeouts"}


def main() -> None:
    """Ask, or write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    asked = commands.add_parser("ask")
    asked.add_argument("binary", type=Path)
    asked.add_argument("cache", type=Path)
    asked.add_argument("types", nargs="*")
    written = commands.add_parser("write")
    written.add_argument("binary", type=Path)
    written.add_argument("caches", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "ask":
        ask(options.binary, options.cache, options.types)
    else:
        write(options.binary, options.caches)


if __name__ == "__main__":
    main()
