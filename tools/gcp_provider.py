"""Write what the Google provider refuses of each type into the rehearsal's data, from its source.

    python -m tools.gcp_provider CHECKOUT

CHECKOUT is a git folder of hashicorp/terraform-provider-google-beta, on which Pulumi's provider is built.
`tools/terraform-provider` evaluates its schemas; nothing of it is compiled or copied. Run it after a change
of `pulumi-gcp` in pyproject.toml, with the commit that it is built on, and after a new row in
`rehearsal/gcp/tables`. It reports what it cannot express.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi_gcp  # noqa: F401 (registers the modules that `describe` reads)

from infra.engine.golang import ROOT
from rehearsal.core.sdk_types import describe
from rehearsal.gcp.provider import FILE
from rehearsal.gcp.table import TABLE
from tools.gcp_validators import constraint
from tools.provider_source import all_types, revision, spellings

SOURCE = "hashicorp/terraform-provider-google-beta"
_SERVICES = {
    "projects": "project",
    "serviceaccount": "service_account",
    "secretmanager": "secret_manager",
    "cloudrunv2": "cloud_run_v2",
    "cloudrun": "cloud_run",
    "cloudfunctionsv2": "cloudfunctions2",
    "cloudscheduler": "cloud_scheduler",
    "artifactregistry": "artifact_registry",
    "servicenetworking": "service_networking",
    "backupdisasterrecovery": "backup_dr",
}
# Property paths with more names are left out: the statements of firewalls contain each other to any depth.
_DEEPEST = 6
_COMBINATIONS = ("conflicts", "partners", "exactly_one", "some")
# Lists of values that the SDK is newer than: its documentation names others.
_OLDER = (("networksecurity/securityProfile:SecurityProfile", "type"),)
# Properties of Terraform's alone.
_NO_PROPERTIES = ("timeouts",)


def terraform_name(token: str) -> str:
    """The provider's name of a type: `google_compute_router_nat` for `compute/routerNat:RouterNat`."""
    service, _, kind = token.partition(":")[0].partition("/")
    words = kind.replace("iAM", "iam").replace("IAMM", "IamM").replace("IAM", "Iam")
    plain = f"google_{_SERVICES.get(service, service)}_{_snake(words)}"
    return plain.replace("google_service_account_account", "google_service_account")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class _Type:
    """The facts of one type, by property path without indices."""

    def __init__(self, token: str, schema: Mapping[str, Any], problems: list[str]) -> None:
        self.token, self.problems = token, problems
        self.names: dict[str, str] = {}
        self.many: set[str] = set()
        self.facts: dict[str, Any] = {}
        described = describe(f"gcp:{token}")
        assert described is not None, token
        self.objects = described["objects"]
        self.nodes = list(self._named(schema, described["inputs"], "", ""))
        for path, node, parent in self.nodes:
            self._add(path, node, parent)

    def _named(
        self, schema: Mapping[str, Any], fields: Mapping[str, Any], terraform: str, path: str
    ) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """(path, node, form of the SDK) of every input; names are those of the SDK."""
        for name, node in sorted(schema.items()):
            if name in _NO_PROPERTIES or not isinstance(node, dict):
                continue
            if not (node.get("Optional") or node.get("Required")):
                continue
            there = f"{terraform}.{name}" if terraform else name
            found = next((one for one in spellings(name) if one in fields), None)
            if found is None:
                self.problems.append(f"{self.token}: {there} is not in the SDK")
                continue
            here = f"{path}.{found}" if path else found
            form = fields[found]["type"]
            self.names[there] = here
            yield here, node, form
            if isinstance(form, dict) and "list" in form:
                self.many.add(here)
                form = form["list"]
            element = node.get("Elem")
            inside = isinstance(form, dict) and "object" in form and here.count(".") < _DEEPEST
            if isinstance(element, dict) and isinstance(element.get("Schema"), dict) and inside:
                yield from self._named(element["Schema"], self.objects[form["object"]], there, here)

    def _add(self, path: str, node: Mapping[str, Any], form: Any) -> None:
        if isinstance(form, dict) and "list" in form:
            lowest, highest = node.get("MinItems", 0), node.get("MaxItems", 0)
            if lowest or highest:
                self._set("items", path, [lowest, highest or None])
        self._validate(path, node)
        element = node.get("Elem")
        if isinstance(element, dict) and "Schema" not in element:
            of_map = (node.get("Type") or {}).get("func") == "schema.TypeMap"
            self._validate(path if of_map else f"{path}[]", element)
        for key, fact in (("ConflictsWith", "conflicts"), ("RequiredWith", "partners")):
            others = self._paths(path, node.get(key) or ())
            if others:
                self._set(fact, path, others)
        for key, fact in (("ExactlyOneOf", "exactly_one"), ("AtLeastOneOf", "some")):
            # A group includes its own property in any case.
            group = sorted({*self._paths(path, node.get(key) or ()), path})
            row = {"within": path.rpartition(".")[0], "of": group}
            if node.get(key) and row not in self.facts.get(fact, ()):
                self.facts.setdefault(fact, []).append(row)

    def _validate(self, path: str, node: Mapping[str, Any]) -> None:
        validator = node.get("ValidateFunc") or node.get("ValidateDiagFunc")
        if not validator:
            return
        found = constraint(validator)
        if found is None:
            self.problems.append(f"{self.token}: {path} is judged by {validator}")
        if (self.token, path) not in _OLDER:
            for fact, value in (found or {}).items():
                self._set(fact, path, value)

    def _paths(self, path: str, others: Any) -> list[str]:
        if isinstance(others, dict):
            self.problems.append(f"{self.token}: {path} has the unknown list {others}")
            return []
        found = []
        for other in others:
            name = self.names.get(re.sub(r"\.\d+(?=\.|$)", "", other))
            # A property that the provider computes is not given.
            if name is not None and name != path:
                found.append(name)
        inside = [one for one in self.many if any(name.startswith(f"{one}.") for name in [path, *found])]
        if inside and found:
            self.problems.append(f"{self.token}: {path} and {found} are inside lists")
        return sorted(set(found))

    def _set(self, fact: str, path: str, value: Any) -> None:
        self.facts.setdefault(fact, {})[path] = value

    def missing(self) -> list[str]:
        """Inputs of the SDK that the source does not have."""
        fields = describe(f"gcp:{self.token}")
        assert fields is not None
        return sorted(set(fields["inputs"]) - set(self.names.values()))


def main() -> None:
    """Write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    checkout: Path = parser.parse_args().checkout
    commit, date = revision(checkout)
    emulated = [token.removeprefix("gcp:") for token in TABLE.rows]
    names = {token: TABLE.changes.terraform(token) for token in TABLE.changes.tokens}
    names |= {token: terraform_name(token) for token in emulated}
    # Of several names of one type, the emulated one, or the one that the provider's name follows from.
    own = {
        name: token for token, name in sorted(names.items(), key=lambda one: terraform_name(one[0]) == one[1])
    }
    own |= {names[token]: token for token in emulated}
    names = {token: name for name, token in own.items()}
    problems: list[str] = []
    lines = []
    schemas = all_types(checkout)
    for token, name in sorted(names.items()):
        schema = (schemas.get(name) or {}).get("Schema")
        if not isinstance(schema, dict) or describe(f"gcp:{token}") is None:
            continue
        found = _Type(token, schema, problems)
        if token in emulated:
            problems += [f"{token}: {name} is not in the source" for name in found.missing()]
        else:  # combinations are of the types whose rows a reader has held against the source
            found.facts = {fact: rows for fact, rows in found.facts.items() if fact not in _COMBINATIONS}
        if token not in emulated and not found.facts:
            continue
        facts = {"terraform": name, **found.facts}
        lines.append(f"{json.dumps(token)}: {json.dumps(facts, separators=(',', ':'))}")
    head = f'{{"source": "{SOURCE}", "commit": "{commit}", "date": "{date}", "types": {{\n'
    FILE.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    sys.stdout.write("\n".join([*problems, f"{FILE.relative_to(ROOT)}: {FILE.stat().st_size} bytes"]) + "\n")


if __name__ == "__main__":
    main()
