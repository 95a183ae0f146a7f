"""Files with which plain Pulumi or Terraform adopt the resources of a stack (pure).

Ids for imports are those of the section Import of each resource in the documentation of
hashicorp/terraform-provider-aws and -google. They differ from the ids in a state for a few types, whose forms
are in the tables of the emulated clouds (column `imported`).
"""

import functools
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rehearsal.core.emulation.import_ids import import_ids
from rehearsal.core.emulation.table import Table
from trainstack.dossier.architecture.exposure import merged
from trainstack.dossier.architecture.parts import Row, is_counted, name_of, of_type

_HELM = "kubernetes:helm.sh/v3:Release"


@dataclass(frozen=True)
class Adopted:
    """A resource that can be imported."""

    urn: str
    kind: str
    name: str
    """Unique among the resources of its type, also of that in Terraform."""
    id: str
    terraform: str
    """Its type in Terraform; empty where it has none."""
    terraform_id: str


@dataclass(frozen=True)
class Imports:
    """Resources that can be imported, and the others with the reason."""

    adopted: Sequence[Adopted]
    left: Sequence[tuple[str, str]]
    """URN and reason."""

    def pulumi(self) -> str:
        """Content for `pulumi import --file` (pkg/cmd/pulumi/operations/import.go, CLI 3.259.0)."""
        rows = [{"type": one.kind, "name": one.name, "id": one.id} for one in self.adopted]
        return json.dumps({"resources": rows}, indent=1) + "\n"

    def terraform(self) -> str:
        """Import blocks, for `terraform plan -generate-config-out=FILE` (Terraform 1.5 or later)."""
        return "\n".join(
            f"import {{\n  to = {one.terraform}.{_identifier(one.name)}\n"
            f"  id = {_quoted(one.terraform_id)}\n}}\n"
            for one in self.adopted
            if one.terraform
        )


def imports(resources: Sequence[Row], stack: str) -> Imports:
    """The imports of the resources of a state."""
    adopted: list[Adopted] = []
    left: list[tuple[str, str]] = []
    taken: set[tuple[str, str]] = set()
    for row in sorted((row for row in resources if is_counted(row)), key=lambda row: str(row["urn"])):
        kind, found = of_type(row["urn"]), row.get("id")
        if kind.startswith("pulumi-python:"):
            left.append((row["urn"], "it exists only in the state, as the record of a validation"))
        elif kind in _NOT_IMPORTED:
            left.append((row["urn"], _NOT_IMPORTED[kind]))
        elif not isinstance(found, str) or not found:
            left.append((row["urn"], "it has no id yet"))
        else:
            known = _terraform(kind)
            name = _unique(name_of(row["urn"], stack), known or kind, taken)
            table = _emulated(kind.partition(":")[0])
            plain = import_ids(table.row(kind), found, merged(row))[0] if table else found
            tf_id = _kubernetes(row) if kind.startswith("kubernetes:") else plain
            adopted.append(Adopted(row["urn"], kind, name, plain, known, tf_id))
            if not known:
                left.append((row["urn"], "Terraform has no type of it that can be imported; Pulumi has"))
    return Imports(adopted, left)


def _unique(name: str, kind: str, taken: set[tuple[str, str]]) -> str:
    made, count = name, 1
    while (kind, _identifier(made)) in taken:
        count += 1
        made = f"{name}-{count}"
    taken.add((kind, _identifier(made)))
    return made


def _identifier(name: str) -> str:
    """A name as Terraform allows it."""
    made = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return made if re.match(r"[A-Za-z_]", made) else f"_{made}"


def _quoted(content: str) -> str:
    """A string of HCL, in which `${` and `%{` would be templates."""
    return json.dumps(content).replace("${", "$${").replace("%{", "%%{")


@functools.cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("terraform.toml").read_text(encoding="utf-8"))


@functools.cache
def _emulated(cloud: str) -> Table | None:
    """The table of an emulated cloud, which has the forms of ids for imports; None for other packages."""
    return import_module(f"rehearsal.{cloud}.table").TABLE if cloud in _table() else None


def _terraform(kind: str) -> str:
    """The type in Terraform, by the table or by the rule of the bridge; empty without one."""
    if kind == _HELM:
        return "helm_release"
    cloud = kind.partition(":")[0]
    if cloud == "kubernetes":
        return "kubernetes_manifest"
    if cloud not in _table():
        return ""
    table = _table()[cloud]
    if kind in table["types"]:
        return str(table["types"][kind])
    module, _, name = kind.split(":")[1].partition("/")
    middle = table["modules"].get(module, module)
    words = re.sub("^iAM", "iam", name).replace("IAM", "Iam")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()
    return "_".join(filter(None, (table["prefix"], middle, snake)))


def _kubernetes(row: Row) -> str:
    """Id of a kubernetes_manifest, and of a Helm release."""
    kind = of_type(row["urn"])
    if kind == _HELM:
        return str(row["id"])
    group, _, name = kind.removeprefix("kubernetes:").partition(":")
    version = group.removeprefix("core/")
    namespace, _, own = str(row["id"]).rpartition("/")
    where = f"namespace={namespace}," if namespace else ""
    return f"apiVersion={version},kind={name},{where}name={own}"


_NOT_IMPORTED: Mapping[str, str] = {
    "aws:autoscaling/attachment:Attachment": "no provider imports it; make it again, which changes nothing",
    "aws:cloudcontrol/resource:Resource": "no provider imports it; aws-native imports what it made",
    "aws:lambda/invocation:Invocation": "a call, which the next deployment after an import would repeat",
    "gcp:projects/serviceIdentity:ServiceIdentity": "no provider imports it: only its creation exists",
    "gcp:storage/bucketObject:BucketObject": "no provider imports it: an object is uploaded",
}
"""Types without an import in the documentation of the providers, with the reason."""
