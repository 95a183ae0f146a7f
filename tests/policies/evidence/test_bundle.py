"""An evidence bundle: complete, the same bytes again, checked by a tool that everybody has, no secrets."""

import csv
import json
import os
import subprocess
import sys
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from policies.exit_codes import AuditExitCode
from policies.rules import CATALOG
from policies.sources.live import snapshot
from policies.sources.live.queries import AnswerItem, Answers, ApiRefusal
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import tables
from tests.policies.audited import AT, LOGS, SECRET, audit, logs, provider, row, state, urn
from tests.policies.problems import rejected
from trainstack.cli.app import app

PASSWORD = "correct-horse-battery"
FILES = {
    "evidence.json", "results.jsonl", "waivers.json", "frameworks.csv", "parts.cdx.json", "report.html",
    "manifest.sha256",
}  # fmt: skip
RELEASE, ADDON, JOB = "kubernetes:helm.sh/v3:Release", "aws:eks/addon:Addon", "kubernetes:batch/v1:Job"
WAIVER = {
    "rule": "MLS-COST-07", "resource": {"urn": urn(LOGS, "waived")}, "owner": "anna", "approvers": ["ben"],
    "reason": "kept for a court", "ticket": "LAW-7", "compensating_control": "a lifecycle rule",
    "created": "2026-11-01", "expires": "2026-12-01",
}  # fmt: skip


def container(image: str, **env: Any) -> dict[str, Any]:
    return {"image": image, "env": [{"name": key, "value": value} for key, value in env.items()]}


def stack(folder: Path) -> Path:
    containers = [
        container("ghcr.io/a/train:1.2@sha256:" + 64 * "a", DB_PASSWORD=PASSWORD),
        container("plain"),
        container("host:5000/b/tagged:3"),
    ]
    return state(
        folder,
        provider("aws", "7.51.1"),
        logs("waived", 0),
        logs("bad", 0, kmsKeyId={**SECRET, "plaintext": json.dumps(PASSWORD)}),
        logs("hidden", SECRET),
        logs("good", 30),
        row(ADDON, "dns", addonName="coredns", addonVersion="v1.14.2-eksbuild.4"),
        row(RELEASE, "kueue", chart="oci://registry.k8s.io/kueue/charts/kueue", version="0.19.2"),
        row(RELEASE, "own", chart="own", repositoryOpts={"repo": f"https://me:{PASSWORD}@charts.example/x"}),
        row(JOB, "train", spec={"template": {"spec": {"containers": containers}}}),
    )


def kept(folder: Path, *more: str, name: str = "bundle") -> Path:
    waivers = folder / "waivers.yaml"
    waivers.write_text(json.dumps({"waivers": [WAIVER]}))
    target = folder / name
    code, _ = audit(stack(folder), "--waivers", str(waivers), "--evidence", str(target), *more)
    assert code == AuditExitCode.VIOLATIONS
    return target


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept(tmp_path_factory.mktemp("evidence"))


def read_json(bundle: Path, name: str = "evidence.json") -> Any:
    return json.loads((bundle / name).read_text())


def results(bundle: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bundle / "results.jsonl").read_text().splitlines()]


def test_the_manifest_names_every_file_and_is_what_sha256sum_checks(bundle: Path) -> None:
    assert {path.name for path in bundle.iterdir()} == FILES
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "manifest.sha256"], cwd=bundle, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(FILES) - 1


def test_it_says_what_was_judged_by_what_and_when(bundle: Path) -> None:
    found = read_json(bundle)
    assert found["at"] == AT
    source = found["source"]
    assert (source["kind"], source["name"], source["stacks"]) == ("state", "state.json", ["app/dev"])
    given = {"state": "state.json", "waivers": "waivers.yaml"}
    digests = subprocess.run(
        ["sha256sum", *given.values()], cwd=bundle.parent, capture_output=True, text=True, check=True
    ).stdout.split()[::2]
    assert found["files"] == {what: {"sha256": digest} for what, digest in zip(given, digests, strict=True)}
    assert found["versions"]["rules"]["count"] == len(CATALOG.rules)
    assert found["settings"]["today"] == AT[:10]
    assert found["verdict"] == {"exit_code": 3, "name": "violations"}
    assert found["counts"]["results"]["waived"] == 1
    assert found["fail_on"] == "low"


def test_every_resource_has_an_outcome_for_every_rule(bundle: Path) -> None:
    rows = results(bundle)
    about = {(one["urn"], one["rule"]) for one in rows if "urn" in one}
    urns = {urn for urn, _ in about}
    assert len(urns) == read_json(bundle)["source"]["resources"]
    assert about == set(product(urns, CATALOG.rules))
    assert all(one["message"] for one in rows if one["result"] in ("not-applicable", "undetermined", "fail"))
    said = {
        one["urn"].rpartition("::")[2]: one["result"]
        for one in rows
        if one["rule"] == "MLS-COST-07" and one.get("kind") == LOGS
    }
    assert said == {"waived": "waived", "bad": "fail", "hidden": "undetermined", "good": "pass"}


def test_waivers_are_there_with_what_they_waive(bundle: Path) -> None:
    (waiver,) = read_json(bundle, "waivers.json")["waivers"]
    assert waiver["holds"] and waiver["waives"] == [urn(LOGS, "waived")]
    assert (waiver["approvers"], waiver["compensating_control"]) == (["ben"], "a lifecycle rule")


def test_frameworks_count_resources_by_control_and_rule(bundle: Path) -> None:
    with (bundle / "frameworks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    (logs_,) = (r for r in rows if r["control"] == "A.8.15" and r["rule"] == "MLS-COST-07")
    assert {key: logs_[key] for key in ("passed", "failed", "waived", "undetermined")} == {
        "passed": "1", "failed": "1", "waived": "1", "undetermined": "1",
    }  # fmt: skip
    assert logs_["status"] == "verified" and logs_["verified_by"]
    assert {one["rule"] for one in rows} == CATALOG.rules.keys()
    assert {one["status"] for one in rows} == {"verified", "to be confirmed", "no control"}


def test_the_bill_names_images_charts_addons_and_plugins(bundle: Path) -> None:
    parts = {one["bom-ref"]: one for one in read_json(bundle, "parts.cdx.json")["components"]}
    assert parts.keys() == {
        "plugin:aws@7.51.1",
        "eks-addon:coredns@v1.14.2-eksbuild.4",
        "helm:kueue@0.19.2",
        "helm:own@",
        f"image:ghcr.io/a/train@sha256:{64 * 'a'}",
        "image:plain@",
        "image:host:5000/b/tagged@3",
    }
    image = parts[f"image:ghcr.io/a/train@sha256:{64 * 'a'}"]
    assert image["purl"] == (f"pkg:oci/train@sha256%3A{64 * 'a'}?repository_url=ghcr.io%2Fa%2Ftrain&tag=1.2")
    assert image["hashes"] == [{"alg": "SHA-256", "content": 64 * "a"}]
    assert parts["helm:kueue@0.19.2"]["externalReferences"][0]["url"] == "oci://registry.k8s.io/kueue/charts"
    assert parts["helm:own@"]["externalReferences"][0]["url"] == "https://charts.example/x"


def test_no_secret_is_in_it(bundle: Path) -> None:
    for path in bundle.iterdir():
        assert PASSWORD not in path.read_text(), path.name


def test_the_same_again_is_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    """In another process, folder, time zone and locale, and with another order of sets."""
    command = [
        str(Path(sys.executable).with_name("trainstack")), "audit", "--at", AT,
        "--state", str(bundle.parent / "state.json"), "--waivers", str(bundle.parent / "waivers.yaml"),
        "--evidence", "again",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C", "LANG": "C"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == AuditExitCode.VIOLATIONS, done.stderr
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (bundle / name).read_bytes(), name


def test_a_zip_has_the_same_files_and_is_the_same_again(bundle: Path, tmp_path: Path) -> None:
    first, second = (kept(tmp_path, name=name) for name in ("one.zip", "two.zip"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == {
            name: (bundle / name).read_bytes() for name in FILES
        }
    assert {path.name for path in tmp_path.iterdir()} == {"one.zip", "two.zip", "state.json", "waivers.yaml"}


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_evidence_is_never_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("of last year")
    with rejected("evidence-path-exists", name):
        audit(stack(tmp_path), "--evidence", str(tmp_path / name))
    assert (tmp_path / name).read_text() == "of last year"
    with rejected("evidence-folder-missing", name):
        audit(stack(tmp_path), "--evidence", str(tmp_path / "none" / name))


def test_nothing_is_left_of_a_bundle_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = stack(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", full)
    with rejected("evidence-unwritable"):
        audit(file, "--evidence", str(tmp_path / "bundle"))
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_snapshot_of_an_account_says_what_could_not_be_read(tmp_path: Path) -> None:
    refused = ApiRefusal("AccessDenied", "not allowed", "logs:DescribeLogGroups")
    collected = Snapshot(
        "aws", "111122223333", "us-east-1", AT, {"logs.DescribeLogGroups": Answers((), (refused,))}
    )
    snapshot.write(collected, tmp_path / "snapshot.json")
    command = ["audit", "--snapshot", str(tmp_path / "snapshot.json"), "--at", AT]
    done = CliRunner().invoke(app, [*command, "--evidence", str(tmp_path / "bundle")])
    assert done.exit_code in (AuditExitCode.UNDETERMINED, AuditExitCode.VIOLATIONS), done.output
    source = read_json(tmp_path / "bundle")["source"]
    assert source["kind"] == "snapshot" and source["could_not_be_read"] and source["never_told"]
    assert read_json(tmp_path / "bundle")["files"].keys() == {"snapshot"}
    assert not (tmp_path / "bundle" / "differences.json").exists()


def test_where_a_state_and_its_account_differ_is_kept(tmp_path: Path) -> None:
    asked = {**row(LOGS, "lost", retentionInDays=30), "inputs": {"name": "lost"}}
    other = Answers((AnswerItem({"logGroupName": "other", "retentionInDays": 7}),))
    answers_by_name = {**dict.fromkeys(tables("aws").queries, Answers()), "logs.DescribeLogGroups": other}
    collected = tmp_path / "snapshot.json"
    snapshot.write(Snapshot("aws", "111122223333", "us-east-1", AT, answers_by_name), collected)
    files = "--state", str(state(tmp_path, asked)), "--snapshot", str(collected)
    done = CliRunner().invoke(app, ["audit", *files, "--at", AT, "--evidence", str(tmp_path / "bundle")])
    assert done.exit_code == AuditExitCode.VIOLATIONS, done.output
    (one,) = json.loads((tmp_path / "bundle" / "differences.json").read_text())["differences"]
    assert (one["what"], one["urn"]) == ("missing", urn(LOGS, "lost"))
    assert "differences.json" in (tmp_path / "bundle" / "manifest.sha256").read_text()
    assert read_json(tmp_path / "bundle")["files"].keys() == {"snapshot", "state"}


def test_what_is_not_kept_is_no_evidence(tmp_path: Path) -> None:
    with rejected("evidence-needs-kept-source"):
        CliRunner().invoke(
            app, ["audit", "--live", "aws", "--evidence", str(tmp_path / "new")], catch_exceptions=False
        )


def test_the_time_decides_which_waivers_hold(tmp_path: Path) -> None:
    """What is judged again for a day of last year is judged as on that day."""
    waivers = tmp_path / "waivers.yaml"
    waivers.write_text(json.dumps({"waivers": [WAIVER]}))
    file = state(tmp_path, logs("waived", 0))
    assert audit(file, "--waivers", str(waivers), "--at", "2026-12-01")[0] == AuditExitCode.CLEAN
    assert audit(file, "--waivers", str(waivers), "--at", "2026-12-02")[0] == AuditExitCode.EXPIRED_WAIVERS
