"""The setup of a Google Cloud project: a script that gcloud's own parser accepts, with exact trust."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.stackspec import load_file
from tests.trainstack.bootstrap.setup import GITHUB, GITHUB_IDS, GITLAB, folder, printed
from trainstack.preflight.gcp.apis import wanted_by
from trainstack.preflight.gcp.permissions import permissions

STACKS = ("small-gcp", "dev-gcp")
MEMBER = ("--agency-member", "group:ops@agency.com")
_GCLOUD = """\
#!/bin/sh
echo "$*" >> {calls}
case "$*" in
  "projects describe "*) echo 42 ;;
  "storage buckets list "*) echo {bucket} ;;
  "storage buckets create "*) exit 1 ;;
esac
"""
_LEAST = 15
"""Commands of every script, at least."""


def commands(script: str) -> list[list[str]]:
    """Every gcloud command of a script, as words."""
    # The disjunction of a condition is none of the shell.
    script = script.replace(" || resource.name", " OR resource.name")
    plain = script.replace('"principal', "principal").replace('$number"', "1")
    pieces = re.split(r" >/dev/null 2>&1(?:; then)?| \|\| | \| |\n", plain)
    trimmed = (one.strip().removeprefix("if ").removeprefix("number=$(") for one in pieces)
    return [
        [
            word.replace(" OR resource.name", " || resource.name")
            for word in shlex.split(one.removesuffix("')") + "'" * one.endswith("')"))
        ]
        for one in trimmed
        if one.startswith("gcloud ")
    ]


def values(words: list[str], flag: str) -> list[str]:
    return [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]


def applied(script: str, tmp_path: Path, bucket: str) -> subprocess.CompletedProcess[str]:
    """The script with a gcloud that records its calls in `calls.txt`.

    It finds everything, also in other projects, makes no bucket, and lists one as the project's own.
    """
    program = tmp_path / "bin" / "gcloud"
    program.parent.mkdir()
    program.write_text(_GCLOUD.format(calls=tmp_path / "calls.txt", bucket=bucket))
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    return subprocess.run(["sh"], input=script, capture_output=True, text=True, env=env, check=False)


@pytest.mark.parametrize("trust", [MEMBER, GITHUB, GITLAB], ids=["member", "github", "gitlab"])
@pytest.mark.parametrize("stack", STACKS)
def test_the_script_is_valid_for_the_shell(stack: str, trust: tuple[str, ...], tmp_path: Path) -> None:
    script = printed(folder(tmp_path, stack), *trust)
    done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(commands(script)) >= _LEAST


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="needs the Google Cloud CLI")
@pytest.mark.parametrize("trust", [MEMBER, GITHUB], ids=["member", "github"])
def test_gcloud_knows_every_command_and_flag(trust: tuple[str, ...], tmp_path: Path) -> None:
    """The CLI's own parser of all its commands, without a request."""
    script = printed(folder(tmp_path, "small-gcp"), *trust)
    file = tmp_path / "commands.json"
    # The length of one value does not matter to the parser.
    short = [[re.sub(r"(--permissions=[^,]+),.*", r"\1", one) for one in words] for words in commands(script)]
    lines = {shlex.join(words) for words in short}
    file.write_text(json.dumps([{"command_string": line} for line in sorted(lines)]))
    lint = ["gcloud", "meta", "lint-gcloud-commands", f"--commands-file={file}"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CLOUDSDK_CONFIG": str(tmp_path / "gcloud")}
    done = subprocess.run(lint, capture_output=True, text=True, check=True, env=env)
    results: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(results) == len(lines)
    assert [(one["command_string"], one.get("error_message")) for one in results if not one["success"]] == []


def test_a_pipeline_is_one_subject_of_one_repository(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-gcp")
    subject = "repo:acme/stacks:environment:small-gcp"
    (created,) = (words for words in commands(printed(made, *GITHUB)) if "create-oidc" in words)
    reads = ("repo:acme/stacks:pull_request", "repo:acme/stacks:ref:refs/heads/main")
    listed = ", ".join(f"'{one}'" for one in (subject, *reads))
    condition = f"assertion.repository == 'acme/stacks' && assertion.sub in [{listed}]"
    assert values(created, "--attribute-condition") == [condition]
    assert values(created, "--issuer-uri") == ["https://token.actions.githubusercontent.com"]
    members = [
        member
        for words in commands(printed(made, *GITHUB))
        if "--role=roles/iam.workloadIdentityUser" in words
        for member in values(words, "--member")
    ]
    pool = "/locations/global/workloadIdentityPools/trainstack-acme"
    start = f"principal://iam.googleapis.com/projects/1{pool}/subject/"
    assert members == [f"{start}{one}" for one in (subject, *reads, reads[1])]
    gitlab = json.loads(printed(made, *GITLAB, "--form", "terraform"))["resource"]
    provider = gitlab["google_iam_workload_identity_pool_provider"]["pipeline"]
    wanted = "assertion.project_path == 'acme/ml/stacks' && assertion.ref_type == 'branch'"
    assert provider["attribute_condition"] == wanted
    trusted = gitlab["google_service_account_iam_member"]
    branch = "/subject/project_path:acme/ml/stacks:ref_type:branch:ref:main"
    ends = {
        "deployer-small-gcp": f"{branch}:environment:small-gcp",
        "nightly-acme": branch,
        "preview-acme": "/attribute.repository/acme/ml/stacks",
    }
    assert trusted.keys() == ends.keys()
    for name, end in ends.items():
        member = trusted[name]["member"]
        assert member.endswith(end) and ("principalSet" in member) is (name == "preview-acme")
    for text in (printed(made, *GITHUB), json.dumps(gitlab)):
        assert "allUsers" not in text


def test_subjects_with_ids_are_of_the_repository_by_its_name(tmp_path: Path) -> None:
    script = commands(printed(folder(tmp_path, "small-gcp"), *GITHUB_IDS))
    (created,) = (words for words in script if "create-oidc" in words)
    ends = ("environment:small-gcp", "pull_request", "ref:refs/heads/main")
    listed = ", ".join(f"'repo:acme@123/stacks@456:{one}'" for one in ends)
    condition = f"assertion.repository == 'acme/stacks' && assertion.sub in [{listed}]"
    assert values(created, "--attribute-condition") == [condition]
    members = [member for words in script for member in values(words, "--member") if "/subject/" in member]
    assert {one.partition("/subject/")[2] for one in members} == {
        f"repo:acme@123/stacks@456:{one}" for one in ends
    }


def test_readers_change_nothing_and_a_deployer_reaches_its_own_state(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-gcp")
    resources = json.loads(printed(made, *GITHUB, "--form", "terraform"))["resource"]
    for name in ("preview-acme", "nightly-acme"):
        granted = resources["google_project_iam_custom_role"][name]["permissions"]
        verbs = {one.rpartition(".")[2] for one in granted if one != "serviceusage.services.use"}
        assert {one for one in verbs if not one.startswith(("get", "list", "search", "export"))} == set()
        assert "storage.objects.get" not in granted
        state = resources["google_storage_bucket_iam_member"][name]
        assert (state["role"], "condition" in state) == ("roles/storage.objectViewer", False)
        assert resources["google_kms_crypto_key_iam_member"][name]["role"].endswith("cryptoKeyDecrypter")
    assert "cloudasset" in resources["google_project_service"], "the nightly audit asks it"
    own = [
        one["condition"]["expression"]
        for one in resources["google_storage_bucket_iam_member"].values()
        if one["role"] == "roles/storage.objectUser"
    ]
    (condition,) = own
    names = re.findall(r'"projects/_/buckets/[^/]+/objects/([^"]+)"', condition)
    assert names == [
        ".pulumi/stacks/acme/small-gcp.", ".pulumi/history/acme/small-gcp/",
        ".pulumi/backups/acme/small-gcp/", ".pulumi/locks/organization/acme/small-gcp/", ".pulumi/meta.yaml",
    ]  # fmt: skip
    script = printed(made, *GITHUB)
    flag = f"--condition=expression={condition},title=Own objects"
    assert shlex.quote(flag) in script


@pytest.mark.parametrize(
    "words", [("--gitlab", f"acme/{'a' * 80}"), ("--github", f"acme@12345678/{'a' * 77}@1234567890")], ids=len
)
def test_subjects_that_google_cloud_refuses_are_refused(words: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        printed(folder(tmp_path, "small-gcp"), *words)
    assert [(one.path, one.code) for one in error.value.problems] == [
        (words[0], "bootstrap-subject-too-long")
    ]


@pytest.mark.parametrize("stack", STACKS)
def test_a_deployer_has_the_permissions_of_its_stack_and_the_state_is_kept(
    stack: str, tmp_path: Path
) -> None:
    made = folder(tmp_path, stack)
    spec = load_file(stack, made).spec
    script = commands(printed(made, *MEMBER))
    (role,) = (words for words in script if words[1:4] == ["iam", "roles", "create"])
    granted = {*values(role, "--permissions")[0].split(",")}
    assert {*permissions(spec)} <= granted
    resources = json.loads(printed(made, *MEMBER, "--form", "terraform"))["resource"]
    (custom,) = resources["google_project_iam_custom_role"].values()
    assert {*custom["permissions"]} == granted
    enabled = {one["service"] for one in resources["google_project_service"].values()}
    (services,) = (words for words in script if words[1:3] == ["services", "enable"])
    assert {*wanted_by(spec)} <= enabled == {one for one in services if one.endswith(".googleapis.com")}
    (bucket,) = resources["google_storage_bucket"].values()
    assert bucket["versioning"] == {"enabled": True} and bucket["public_access_prevention"] == "enforced"
    assert bucket["uniform_bucket_level_access"] and bucket["encryption"]["default_kms_key_name"]
    assert bucket["lifecycle"] == {"prevent_destroy": True}
    (created,) = (words for words in script if words[1:4] == ["storage", "buckets", "create"])
    assert {"--uniform-bucket-level-access", "--public-access-prevention"} <= {*created}
    assert values(created, "--default-encryption-key")
    updates = [words for words in script if words[1:4] == ["storage", "buckets", "update"]]
    assert any("--versioning" in words for words in updates)


def test_the_provider_with_the_number_of_the_project_is_printed_when_the_setup_is_applied(
    tmp_path: Path,
) -> None:
    made = folder(tmp_path, "small-gcp")
    done = applied(printed(made, *GITHUB), tmp_path, "trainstack-acme-example-ml-jobs")
    pool = "locations/global/workloadIdentityPools/trainstack-acme"
    name = "TRAINSTACK_IDENTITY_PROVIDER_SMALL_GCP"
    assert (done.returncode, done.stdout) == (0, f"{name}=projects/42/{pool}/providers/pipeline\n")
    outputs = json.loads(printed(made, *GITHUB, "--form", "terraform"))["output"]
    assert outputs[name] == {"value": "${google_iam_workload_identity_pool_provider.pipeline.name}"}
    assert name not in printed(made, *MEMBER)


def test_a_bucket_of_another_project_is_not_adopted(tmp_path: Path) -> None:
    """Names of buckets are of all customers, and this one can be guessed."""
    script = printed(folder(tmp_path, "small-gcp"), *GITHUB)
    assert applied(script, tmp_path, "trainstack-other").returncode != 0
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert calls[-1].startswith("storage buckets create gs://trainstack-acme-")
    assert not any("buckets update" in one or "add-iam-policy-binding" in one for one in calls)
