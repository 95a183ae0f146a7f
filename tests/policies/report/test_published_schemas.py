"""Reports in forms that others have published, held against the published schema itself.

The schemas are those in released Go modules (tools/schemas/go.mod): OASIS SARIF 2.1.0 with errata 01, and
CycloneDX 1.6, whose own schema refers to the two beside it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator, Draft7Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from rehearsal.controlplane import binaries
from tests.policies.audited import SECRET, audit, logs, provider, row, state


def folder(name: str) -> Path:
    if not binaries.kept(name):
        pytest.skip(f"the schema of {name} is not here: `make binaries` fetches it, and says why it cannot")
    (found,) = binaries.files_of(name)
    return found


@pytest.fixture(scope="module")
def sarif() -> Draft4Validator:
    text = (folder("sarif") / "schema.go").read_text(encoding="utf-8")
    _, schema, _ = text.split("`")
    Draft4Validator.check_schema(json.loads(schema))
    return Draft4Validator(json.loads(schema), format_checker=Draft4Validator.FORMAT_CHECKER)


@pytest.fixture(scope="module")
def cyclonedx() -> Draft7Validator:
    def schema(name: str) -> Any:
        return json.loads((folder("cyclonedx") / name).read_text(encoding="utf-8"))

    registry: Registry[Any] = Registry()
    for beside in ("spdx.schema.json", "jsf-0.82.schemax.json"):
        registry = Resource.from_contents(schema(beside), DRAFT7) @ registry
    own = schema("bom-1.6.schema.json")
    return Draft7Validator(own, registry=registry, format_checker=Draft7Validator.FORMAT_CHECKER)


def errors(validator: Any, document: Any) -> list[str]:
    return [f"{one.json_path}: {one.message}"[:300] for one in validator.iter_errors(document)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A violation, a waiver, an answer that is missing, what is known and what is gone."""
    home = tmp_path_factory.mktemp("published")
    before = home / "before.json"
    before.write_text(audit(state(home, logs("known", 0), logs("gone", 0)), "--format", "json")[1])
    waiver = {
        "rule": "MLS-COST-07", "resource": {"urn": "*::waived"}, "owner": "anna", "approvers": ["ben"],
        "reason": "kept for a court", "ticket": "LAW-7", "compensating_control": "a lifecycle rule",
        "created": "2026-11-01", "expires": "2026-12-01",
    }  # fmt: skip
    (home / "waivers.yaml").write_text(json.dumps({"waivers": [waiver]}))
    image = "ghcr.io/a/train:1.2@sha256:" + 64 * "a"
    state(
        home,
        provider("aws", "7.51.1"),
        *(logs(name, 0) for name in ("known", "waived", "new \x1b[31m\ud800 <b> %")),
        logs("hidden", SECRET),
        row("aws:eks/addon:Addon", "dns", addonName="coredns", addonVersion="v1.14.2"),
        row("kubernetes:helm.sh/v3:Release", "kueue", chart="oci://registry.k8s.io/kueue", version="0.19.2"),
        row("kubernetes:core/v1:Pod", "pod", spec={"containers": [{"image": image}, {"image": "plain"}]}),
    )
    return home


def test_sarif_is_valid(found: Path, sarif: Draft4Validator) -> None:
    more = ("--waivers", str(found / "waivers.yaml"), "--baseline", str(found / "before.json"))
    _, said = audit(found / "state.json", *more, "--format", "sarif")
    document = json.loads(said)
    assert errors(sarif, document) == []
    results = document["runs"][0]["results"]
    logs_ = [one for one in results if one["ruleId"] == "MLS-COST-07"]
    assert sorted((one["kind"], one["baselineState"]) for one in logs_) == [
        ("fail", "new"), ("fail", "new"), ("fail", "unchanged"), ("open", "new"), ("pass", "absent"),
    ]  # fmt: skip
    assert all("baselineState" in one for one in results)
    assert {one["baselineState"] for one in results if "suppressions" in one} == {"new"}


def test_sarif_without_a_baseline_is_valid_and_has_no_state(found: Path, sarif: Draft4Validator) -> None:
    document = json.loads(audit(found / "state.json", "--format", "sarif")[1])
    assert errors(sarif, document) == []
    assert not any("baselineState" in one for one in document["runs"][0]["results"])


def test_the_bill_is_valid(found: Path, tmp_path: Path, cyclonedx: Draft7Validator) -> None:
    audit(found / "state.json", "--evidence", str(tmp_path / "bundle"))
    bill = json.loads((tmp_path / "bundle" / "parts.cdx.json").read_text())
    assert len(bill["components"]) == 5
    assert errors(cyclonedx, bill) == []
    # Both schemas beside it are found: they say what is wrong.
    bill["components"][0]["licenses"] = [{"license": {"id": "none of SPDX"}}]
    assert errors(cyclonedx, bill)


def test_the_schemas_refuse_what_is_wrong(sarif: Draft4Validator, cyclonedx: Draft7Validator) -> None:
    assert errors(sarif, {"version": "2.1.0", "runs": [{"results": []}]})
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "planet", "name": "a"}]}
    assert errors(cyclonedx, bill)
