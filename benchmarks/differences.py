"""Agreement of the emulated providers with real ones on what a change of one property does.

    .venv/bin/python benchmarks/differences.py [--write] [--source CHECKOUT] [--products CHECKOUT]

The judge of AWS is the source of Terraform's AWS provider in a checkout. Without one it is the provider
itself where it is on this machine, in the folder that Terraform's settings or `TF_PLUGIN_FOLDER` name
(/opt/tf-plugins without): it is asked for its plan by the protocol of `terraform plan`, for pairs of
configurations of every type that both know: a property changed, left out, stated as the cloud has it,
added. The facts of the rehearsal come from such plans, so only the source is a judge of its own. The judge
of Google Cloud are the product files of a checkout of GoogleCloudPlatform/magic-modules.

`--write` stores the pairs of the types of `tests/rehearsal/differences`. Without a judge a line says so.
"""

import argparse
import collections
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.compared import source_schemas  # noqa: E402
from benchmarks.compared.product_files import verdicts  # noqa: E402
from rehearsal.aws.table import TABLE as AWS  # noqa: E402
from rehearsal.core.emulation.table import Table  # noqa: E402
from rehearsal.core.schema import ResourceSchema, Schemas  # noqa: E402
from rehearsal.gcp.table import TABLE as GCP  # noqa: E402
from tests.rehearsal.aws import harness as aws  # noqa: E402
from tests.rehearsal.differences import arguments, pairs  # noqa: E402
from tests.rehearsal.differences.pairs import Pair  # noqa: E402
from tests.rehearsal.driver import CACHE, Driver  # noqa: E402
from tests.rehearsal.gcp import harness as gcp  # noqa: E402
from tools.provider_pairs import SETTINGS, Judge  # noqa: E402
from tools.provider_protocol import TerraformProvider, running  # noqa: E402
from tools.provider_source import revision, spellings, unpack  # noqa: E402


def binary() -> Path | None:
    """The newest AWS provider on this machine, or None."""
    folder = Path(os.environ.get("TF_PLUGIN_FOLDER", "/opt/tf-plugins"))
    return max(folder.glob("registry.terraform.io/hashicorp/aws/*/*/terraform-provider-aws*"), default=None)


def sdk_path(schema: ResourceSchema, steps: list[str]) -> str | None:
    """The path of Pulumi's for steps of Terraform's, or None."""
    fields, found = schema.inputs, []
    for name in steps:
        known = next((one for one in spellings(name) if one in fields), None)
        if known is None:
            return None
        found.append(known)
        form = fields[known].type
        form = form["list"] if isinstance(form, dict) and "list" in form else form
        inside = form["object"] if isinstance(form, dict) and "object" in form else None
        fields = schema.objects[inside] if inside else {}
    return ".".join(found)


def _differ(schema: ResourceSchema, path: str) -> bool:
    """Return whether a property has two values: not a block in which nothing is required."""
    _, first, second = pairs.values(schema, path)
    return first != second


def of_aws(provider: TerraformProvider, schemas: Schemas, types: dict[str, str]) -> Iterator[Pair]:
    """The pairs of each type, judged."""
    for token, name in types.items():
        schema = schemas.resource(f"aws:{token}")
        if schema is None or name not in provider.schemas:
            continue
        judge = Judge(provider, name)
        if not judge.steady:
            continue
        for steps, optional, computed in judge.places():
            path = sdk_path(schema, steps)
            if path is None or not _differ(schema, path):
                continue
            for kind, verdict in judge.pairs(steps, optional=optional, computed=computed):
                yield Pair(token, path, kind, verdict)


def of_aws_source(checkout: Path, schemas: Schemas, types: dict[str, str]) -> Iterator[Pair]:
    """The pairs of each type, judged by the provider's source."""
    tokens: dict[str, list[str]] = {}
    for token, name in types.items():
        tokens.setdefault(name, []).append(token)
    for name, steps, kinds in source_schemas.verdicts(checkout):
        for token in tokens.get(name, ()):
            schema = schemas.resource(f"aws:{token}")
            path = sdk_path(schema, steps) if schema else None
            if schema is not None and path is not None and _differ(schema, path):
                yield from (Pair(token, path, kind, verdict) for kind, verdict in kinds.items())


def of_gcp(checkout: Path, schemas: Schemas, types: dict[str, str]) -> Iterator[Pair]:
    """The pairs of each type, judged."""
    tokens = {name: token for token, name in types.items()}
    for name, steps, kinds in verdicts(checkout):
        schema = schemas.resource(f"gcp:{tokens[name]}") if name in tokens else None
        path = sdk_path(schema, steps.split(".")) if schema else None
        if schema is None or path is None or not _differ(schema, path):
            continue
        for kind, verdict in kinds.items():
            yield Pair(tokens[name], path, kind, verdict)


def compare(driver: Driver, schemas: Schemas, judged: list[Pair], judge: str, *, shown: int) -> None:
    """Print the agreement and the disagreements that no row explains."""
    agree = explained = 0
    apart: list[str] = []
    kinds: collections.Counter[str] = collections.Counter()
    for one in judged:
        schema = schemas.resource(f"{driver.package}:{one.token}")
        assert schema is not None
        ours, _ = pairs.verdict(driver, schema, one)
        if ours == one.verdict or (ours == "may" and one.verdict != "none"):
            agree += 1
        elif arguments.of(one):
            explained += 1
        else:
            apart.append(f"{one.token} {one.path} {one.kind}: ours {ours}, theirs {one.verdict}")
            kinds[f"{one.kind}: ours {ours}, theirs {one.verdict}"] += 1
    types = len({one.token for one in judged})
    print(f"{driver.package}, judged by {judge}: {len(judged)} pairs of {types} types")
    print(
        f"  agree {agree} ({agree / max(1, len(judged)):.2%}), explained {explained}, disagree {len(apart)}"
    )
    for kind, count in kinds.most_common():
        print(f"  {count:6} {kind}")
    for line in apart[:shown]:
        print(f"    {line}")


def _types(table: Table) -> dict[str, str]:
    return {token: table.changes.terraform(token) for token in table.changes.tokens}


def _sample(judged: list[Pair], package: str) -> set[str]:
    """The types of the tables, and every fifth other one."""
    tokens = sorted({one.token for one in judged})
    rows = {"aws": AWS, "gcp": GCP}[package].rows
    emulated = [token for token in tokens if f"{package}:{token}" in rows]
    return {*emulated, *[token for token in tokens if token not in emulated][::5]}


def main() -> None:
    """Print the agreement of each provider; store the pairs of tests where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--source", type=Path)
    parser.add_argument("--products", type=Path)
    parser.add_argument("--shown", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        schemas = {package: Schemas(package, CACHE) for package in ("aws", "gcp")}
        drivers = {
            "aws": aws.Driver(Path(folder) / "aws", schemas["aws"]),
            "gcp": gcp.Driver(Path(folder) / "gcp", schemas["gcp"]),
        }
        found: dict[str, tuple[str, list[Pair]]] = {}
        provider = binary()
        if options.source is not None:
            commit, date = revision(options.source)
            name = f"source of the AWS provider at {commit[:8]} ({date})"
            types = _types(AWS)
            found["aws"] = (name, list(of_aws_source(options.source, schemas["aws"], types)))
        elif provider is None:
            print("skipped: no AWS provider of Terraform's on this machine (TF_PLUGIN_FOLDER)")
        else:
            with running(provider) as real:
                real.configure(SETTINGS)
                found["aws"] = (provider.name, list(of_aws(real, schemas["aws"], _types(AWS))))
        if options.products is None:
            print("skipped: no checkout of GoogleCloudPlatform/magic-modules (--products)")
        else:
            commit, date = revision(options.products)
            name = f"GoogleCloudPlatform/magic-modules@{commit[:8]} ({date}): mmv1/products"
            files = Path(folder) / "products"
            unpack(options.products, ("mmv1/products",), files)
            found["gcp"] = (name, list(of_gcp(files, schemas["gcp"], _types(GCP))))
        for package, (judge, judged) in found.items():
            compare(drivers[package], schemas[package], judged, judge, shown=options.shown)
            if options.write:
                file = arguments.FOLDER / f"{package}.json"
                tested = (
                    {one.token for one in pairs.read(file)[1]} if file.exists() else _sample(judged, package)
                )
                pairs.write(file, judge, [one for one in judged if one.token in tested])
        for one in schemas.values():
            one.close()


if __name__ == "__main__":
    main()
