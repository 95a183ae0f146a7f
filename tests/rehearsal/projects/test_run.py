"""Any Pulumi project is rehearsed in its folder, which stays unchanged."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from infra.engine import install
from infra.engine.stack import OperationOutcome
from infra.errors import UserError
from rehearsal.client import Rehearsal
from rehearsal.projects import coverage, dependencies, stack_file
from rehearsal.projects import project as projects
from rehearsal.projects import run as project_run
from rehearsal.projects import workspace as workspaces
from rehearsal.projects.coverage import Standing
from rehearsal.projects.reports.model import UP, ProjectReport, RehearsalStep
from rehearsal.projects.reports.text import show
from tests.trainstack.cli.command import checked
from tests.trainstack.cli.command import run as trainstack

STACK = "pulumi:pulumi:Stack"
PROGRAMS = Path(__file__).with_name("programs")


def run(rehearsal: Rehearsal, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("trainstack"), "rehearse", "run", PROGRAMS / name, *arguments],
        env={**os.environ, "TRAINSTACK_REHEARSAL_HOME": str(rehearsal.home)},
        check=False,
        capture_output=True,
        text=True,
    )


def fingerprint(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_program_passes_and_its_folder_is_not_touched(rehearsal: Rehearsal) -> None:
    before = fingerprint(PROGRAMS / "certificates")
    done = run(rehearsal, "certificates")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "certificates passes" in done.stdout
    assert fingerprint(PROGRAMS / "certificates") == before


def test_assertions_of_a_project_decide_and_are_reported(rehearsal: Rehearsal) -> None:
    before = fingerprint(PROGRAMS / "website")
    done = run(rehearsal, "website", "--report", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = checked(done.stdout)
    assert [one["result"] for one in found["steps"]] == ["done"] * 3 and found["left_behind"] == 0
    assert len(found["assertions"]) == 7 and all(one["passed"] for one in found["assertions"])
    assert {"type": "aws:ec2/instance:Instance", "resources": 1} in found["emulation"]["emulated"]
    assert found["emulation"]["unknown"] == []
    assert fingerprint(PROGRAMS / "website") == before


def test_relative_paths_of_assets_begin_in_the_folder_of_the_project(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    text = """
import json
import pulumi
from pulumi_aws import iam, lambda_, s3

trust = {"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}}
role = iam.Role("r", assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
parts = {"code.py": pulumi.FileAsset("code.py"), "word": pulumi.StringAsset("said")}
code = pulumi.AssetArchive(parts)
function = lambda_.Function("f", runtime="python3.12", handler="code.answer", role=role.arn, code=code)
said = lambda_.Invocation("i", function_name=function.name, input="{}")
pulumi.export("said", said.result)
bucket = s3.Bucket("b", force_destroy=True)
s3.BucketObject("o", bucket=bucket.id, key="k", source=pulumi.FileAsset("./code.py"))
"""
    main = {
        "__main__.py": text,
        "code.py": "def answer(event, context):\n    return open('word').read()\n",
        "rehearsal.yaml": "outputs: {said: {equals: '\"said\"'}}\n",
        "Pulumi.dev.yaml": "config: {aws:region: us-east-1}",
    }
    project(tmp_path / "p", "name: shop\nruntime: python\n", **main)
    done = run(rehearsal, str(tmp_path / "p"), "--report", "json")
    found = checked(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["steps"][1]["counts"] == {"same": 6} and "no content" not in done.stderr


def test_a_second_version_is_previewed_against_an_exported_state(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    """The state is of another version of the provider, has a secret and a type that no package has."""
    urn, provider = "urn:pulumi:prod::shop::", "urn:pulumi:prod::shop::pulumi:providers:aws::default_6_0_0"
    at = {"version": "6.0.0", "region": "us-east-1"}
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}

    def row(kind: str, name: str, **more: object) -> dict[str, object]:
        made = {
            "custom": True,
            "id": name,
            "provider": f"{provider}::p",
            "parent": f"{urn}{STACK}::shop-prod",
        }
        return {"urn": f"{urn}{kind}::{name}", "type": kind, **made, **more}

    def queue(name: str, **inputs: object) -> dict[str, object]:
        key = f"https://sqs.us-east-1.amazonaws.com/1/{name}"
        given = {"name": name, **inputs}
        return row("aws:sqs/queue:Queue", name, id=key, inputs=given, outputs={**given, "url": key})

    rows = [
        {"urn": f"{urn}{STACK}::shop-prod", "type": STACK, "custom": False},
        {**row("pulumi:providers:aws", "p", inputs=at, outputs=at), "urn": provider},
        queue("kept", visibilityTimeoutSeconds=30), queue("gone-1"), queue("gone-2", policy=secret),
        queue("fifo", fifoQueue=False), row("docker:index/image:Image", "web", provider=""),
    ]  # fmt: skip
    (tmp_path / "state.json").write_text(json.dumps({"version": 3, "deployment": {"resources": rows}}))
    text = "from pulumi_aws import sqs\nsqs.Queue('kept', name='kept', visibility_timeout_seconds=60)\n"
    text += "sqs.Queue('fifo', name='fifo.fifo', fifo_queue=True)\n"
    asserted = "never: [{operation: replace, name: kept}, {operation: delete, name: gone-1}]\n"
    main = {
        "__main____py": text,
        "rehearsal.yaml": asserted,
        "Pulumi.prod.yaml": "config: {aws:region: us-east-1}",
    }
    project(tmp_path / "p", "name: shop\nruntime: python\n", **main)
    done = run(rehearsal, str(tmp_path / "p"), "--seed", str(tmp_path / "state.json"), "--report", "json")
    found = checked(done.stdout)
    (step,) = found["steps"]
    assert step["result"] == "done", done.stdout + done.stderr
    changes = {one["name"]: one["operation"] for one in step["changes"]}
    assert changes == {"kept": "update", "fifo": "replace", "gone-1": "delete", "gone-2": "delete"}
    assert [one["passed"] for one in found["assertions"]] == [True, False] and done.returncode == 1
    assert found["left_out"] == {"docker:index/image:Image": 1}
    assert found["emulation"]["unknown"] == [{"type": "docker:index/image:Image", "resources": 1}]
    with pytest.raises(UserError) as refused:
        trainstack("rehearse", "run", str(PROGRAMS / "website"), "--seed", str(tmp_path / "state.json"))
    assert refused.value.codes == (("state-of-another-stack", "--seed"),)


def test_pulumi_commands_config_and_stack_references(rehearsal: Rehearsal) -> None:
    assert run(rehearsal, "website", "--", "up", "--yes", "--skip-preview").returncode == 0
    shown = run(rehearsal, "website", "--", "stack", "output", "--json")
    assert "[secret]" in shown.stdout
    bucket = json.loads(shown.stdout)["bucket"]
    assert run(rehearsal, "reader", "--", "up", "--yes", "--skip-preview").returncode == 0
    read = json.loads(run(rehearsal, "reader", "--", "stack", "output", "--json").stdout)
    assert read == {"bucket": bucket, "password": "[secret]"}
    set_ = run(
        rehearsal, "website", "--config", "website:title=Other", "--", "config", "get", "website:title"
    )
    assert set_.stdout.strip() == "Other"
    kept = run(rehearsal, "website", "--", "config", "get", "website:title")
    assert kept.stdout.strip() == "Other"


def test_missing_configuration_is_reported_as_by_pulumi(rehearsal: Rehearsal, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "Pulumi.yaml").write_text("name: asks\nruntime: python\n")
    (tmp_path / "p" / "__main__.py").write_text("import pulumi\npulumi.Config().require('size')\n")
    done = run(rehearsal, str(tmp_path / "p"))
    assert done.returncode == 1
    printed = re.sub(r"\s+", " ", done.stdout)
    assert (
        "Missing required configuration variable 'asks:size'" in printed and "--config KEY=VALUE" in printed
    )


def test_an_audit_takes_settings_of_the_program_as_a_preview_does(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    text = "import pulumi\npulumi.export('size', pulumi.Config().require_int('size'))\n"
    project(tmp_path / "p", "name: asks\nruntime: python\n", **{"__main__.py": text})
    policy = tmp_path / "dev.yaml"
    policy.write_text("settings: {production: false}")
    for command in (("preview", "--project"), ("audit", "--allow-empty", "-c", str(policy), "--preview")):
        given = (*command, str(tmp_path / "p"))
        with pytest.raises(UserError) as refused:
            trainstack(*given, "--config", "size")
        assert refused.value.codes == (("config-not-a-setting", "--config"),)
        with pytest.raises(UserError):
            trainstack(*given, "--config", "asks:size=many")
        assert trainstack(*given, "--config", "asks:size=3")[0] == 0


def test_changes_of_an_unchanged_program_are_listed(rehearsal: Rehearsal, tmp_path: Path) -> None:
    keepers = "keepers={'now': str(time.time())}"
    text = f"import time\nimport pulumi_random\npulumi_random.RandomId('id', byte_length=4, {keepers})\n"
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "Pulumi.yaml").write_text("name: restless\nruntime: python\n")
    (tmp_path / "p" / "__main__.py").write_text(text)
    done = run(rehearsal, str(tmp_path / "p"))
    assert done.returncode == 1
    assert "replace id (keepers.now)" in done.stdout


def project(folder: Path, text: str, **files: str) -> projects.PulumiProject:
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text(text)
    for name, content in files.items():
        (folder / name.replace("__py", ".py")).write_text(content)
    return projects.read(folder)


def test_only_projects_of_known_languages_are_accepted(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        projects.read(tmp_path)
    assert caught.value.codes == (("no-pulumi-project", "DIR"),)
    with pytest.raises(UserError) as caught:
        project(tmp_path, "name: x\nruntime: {name: dotnet}\n")
    assert caught.value.codes == (("project-language-unknown", f"{tmp_path}/Pulumi.yaml: runtime"),)


def test_missing_packages_are_named_with_their_distribution(tmp_path: Path) -> None:
    optional = "try:\n    import absent_two\nexcept ImportError: pass\n"
    main = f"import pulumi, absent_one\nfrom own import x\n{optional}"
    (tmp_path / "requirements.txt").write_text("Absent.One>=2 # why\n-r more.txt\n")
    (tmp_path / "more.txt").write_text("pulumi<1\n")
    found = project(
        tmp_path, "name: x\nruntime: python\n", __main____py=main, own__py="import pulumi_absent\nx = 1\n"
    )
    assert dependencies.missing_modules(tmp_path) == {"absent_one": "__main__.py", "pulumi_absent": "own.py"}
    assert dependencies.other_versions(tmp_path)[0].startswith("pulumi<1 (here 3.")
    with pytest.raises(UserError) as error:
        project_run._refuse_missing(found)
    assert {code for code, _ in error.value.codes} == {"program-module-missing"}
    assert " Absent.One" in str(error.value) and "aws, gcp, kubernetes" in str(error.value)


def test_an_sdk_that_was_generated_into_the_project_is_used_without_installing_it(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    package = tmp_path / "sdks" / "own" / "pulumi_own"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "pulumi-plugin.json").write_text('{"name": "own", "version": "1.2.0"}')
    (tmp_path / "requirements.txt").write_text("pulumi\nsdks/own\n")
    text = "name: x\nruntime: python\npackages: {own: ./plugin, other: {source: ./plugin}, far: far@1.0.0}\n"
    found = project(tmp_path, text, __main____py="import pulumi_own\n")
    project_run._refuse_missing(found)
    workspace = workspaces.of_project(found, "dev", rehearsal, install.require().path)
    asked = "import importlib.metadata as m, pulumi_own; print(m.version('pulumi_own'))"
    done = subprocess.run(
        [sys.executable, "-c", asked], env=workspace.variables, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1.2.0"
    here = str(tmp_path / "plugin")
    copied = stack_file.load(workspace.folder / "Pulumi.yaml")["packages"]
    assert copied == {"own": here, "other": {"source": here}, "far": "far@1.0.0"}


def test_a_dynamic_provider_is_run_by_the_python_of_the_rehearsal(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)  # no environment is activated
    found = project(tmp_path / "p", "name: x\nruntime: python\n", __main____py="")
    workspace = workspaces.of_project(found, "dev", rehearsal, install.require().path)
    first = shutil.which("python3", path=workspace.variables["PATH"])
    assert first == str(Path(sys.executable).with_name("python3"))


def test_a_reference_to_another_organization_says_what_to_write(tmp_path: Path) -> None:
    failed = OperationOutcome(succeeded=False, errors=["organization name must be 'organization'"])
    printed = io.StringIO()
    report = ProjectReport("x", "dev", [RehearsalStep(UP, failed)])
    show(Console(file=printed, width=1000), tmp_path, report)
    assert "get_organization()" in printed.getvalue()


def test_the_stack_is_chosen_when_it_is_clear(tmp_path: Path) -> None:
    found = project(tmp_path, "name: x\nruntime: python\n")
    assert found.choose("") == "dev" and found.choose("prod") == "prod"
    (tmp_path / "Pulumi.prod.yaml").write_text("config: {}\n")
    assert found.choose("") == "prod"
    (tmp_path / "Pulumi.test.yaml").write_text("config: {}\n")
    with pytest.raises(UserError) as caught:
        found.choose("")
    assert caught.value.codes == (("project-has-several-stacks", "--stack"),)


def test_renewed_settings_keep_what_was_set_in_the_rehearsal(tmp_path: Path) -> None:
    source, copy = tmp_path / "Pulumi.dev.yaml", tmp_path / "copy.yaml"
    source.write_text("secretsprovider: awskms://x\nconfig: {a: 1, b: 2, p: {secure: xyz}}\n")
    assert stack_file.renew(source, copy) == ("p",)
    content = stack_file.load(copy)
    assert content["config"] == {"a": 1, "b": 2} and "secretsprovider" not in content
    copy.write_text("encryptionsalt: s\nconfig: {a: 9, b: 2, p: mine, own: 1}\n")
    assert stack_file.renew(source, copy) == ()
    assert stack_file.load(copy) == {"encryptionsalt": "s", "config": {"a": 9, "b": 2, "p": "mine", "own": 1}}
    source.write_text("config: {a: 3}\n")
    stack_file.renew(source, copy)
    assert stack_file.load(copy)["config"] == {"a": 3, "own": 1}


def test_a_stack_of_a_checkout_is_copied_without_what_cannot_be_decrypted(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    stack = tmp_path / "stacks" / "config" / "Pulumi.dev.yaml"
    stack.parent.mkdir(parents=True)
    text = (
        "secretsprovider: awskms://alias/prod\nencryptedkey: k\nconfig: {x:a: one, x:p: {secure: v1:abc}}\n"
    )
    stack.write_text(text)
    found = project(tmp_path, "name: x\nruntime: python\nstackConfigDir: stacks/config\n")
    workspace = workspaces.of_checkout(found, "dev", rehearsal, install.require().path)
    assert ["x:p" in note for note in workspace.notes] == [True]
    copy = stack_file.load(Path(workspace.environment["PULUMI_OPTION_CONFIG_FILE"]))
    assert copy["config"] == {"x:a": "one"} and {"encryptionsalt", "config"} == set(copy)
    assert stack.read_text() == text


def test_missing_emulations_are_listed() -> None:
    errors = [
        "NotEmulated: the rehearsal does not know the function aws:ec2/getSpotPrice:getSpotPrice. Emulated",
        "no resource plugin 'pulumi-resource-docker' found in the workspace",
    ]
    assert coverage.lacking(errors) == ["function aws:ec2/getSpotPrice:getSpotPrice", "package docker"]
    seen = {"aws:ec2/vpc:Vpc", "aws:appsync/resolver:Resolver", "gcp:compute/network:Network"}
    seen |= {"gcp:cloudfunctions/function:Function", "kubernetes:core/v1:Pod"}
    known = coverage.standings(dict.fromkeys(seen, 2))
    assert known[Standing.SCHEMA_ONLY] == {
        "aws:appsync/resolver:Resolver": 2, "gcp:cloudfunctions/function:Function": 2,
    }  # fmt: skip
    assert known[Standing.UNKNOWN] == {} and len(known[Standing.EMULATED]) == 3


@pytest.mark.parametrize(
    ("token", "standing"),
    [
        ("aws:s3/bucketV2:BucketV2", Standing.EMULATED),
        ("aws:ec2/nothing:Nothing", Standing.UNKNOWN),
        ("docker:index/image:Image", Standing.UNKNOWN),
        ("random:index/randomId:RandomId", Standing.EMULATED),
        ("random:index/other:Other", Standing.UNKNOWN),
        ("kubernetes:example.org/v1:Widget", Standing.SCHEMA_ONLY),
    ],
)
def test_what_is_known_of_a_type(token: str, standing: Standing) -> None:
    assert coverage.standing(token) is standing
