"""Terraform configurations: arguments by the providers' schemas, references by what is declared."""

import inspect
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi_aws as aws
import pulumi_gcp as gcp
import pytest

from tests.trainstack.bootstrap.setup import AGENCY, GITHUB, folder, printed

# Pulumi's SDKs are made from the schemas of the Terraform providers.
CLASSES: dict[str, Any] = {
    "aws_budgets_budget": aws.budgets.Budget,
    "aws_iam_openid_connect_provider": aws.iam.OpenIdConnectProvider,
    "aws_iam_policy": aws.iam.Policy,
    "aws_iam_role": aws.iam.Role,
    "aws_iam_role_policy_attachment": aws.iam.RolePolicyAttachment,
    "aws_kms_alias": aws.kms.Alias,
    "aws_kms_key": aws.kms.Key,
    "aws_s3_bucket": aws.s3.Bucket,
    "aws_s3_bucket_ownership_controls": aws.s3.BucketOwnershipControls,
    "aws_s3_bucket_policy": aws.s3.BucketPolicy,
    "aws_s3_bucket_public_access_block": aws.s3.BucketPublicAccessBlock,
    "aws_s3_bucket_server_side_encryption_configuration": aws.s3.BucketServerSideEncryptionConfiguration,
    "aws_s3_bucket_versioning": aws.s3.BucketVersioning,
    "google_billing_account_iam_member": gcp.billing.AccountIamMember,
    "google_essential_contacts_contact": gcp.essentialcontacts.Contact,
    "google_iam_workload_identity_pool": gcp.iam.WorkloadIdentityPool,
    "google_iam_workload_identity_pool_provider": gcp.iam.WorkloadIdentityPoolProvider,
    "google_kms_crypto_key": gcp.kms.CryptoKey,
    "google_kms_crypto_key_iam_member": gcp.kms.CryptoKeyIAMMember,
    "google_kms_key_ring": gcp.kms.KeyRing,
    "google_project_iam_custom_role": gcp.projects.IAMCustomRole,
    "google_project_iam_member": gcp.projects.IAMMember,
    "google_project_service": gcp.projects.Service,
    "google_service_account": gcp.serviceaccount.Account,
    "google_service_account_iam_member": gcp.serviceaccount.IAMMember,
    "google_storage_bucket": gcp.storage.Bucket,
    "google_storage_bucket_iam_member": gcp.storage.BucketIAMMember,
}
META = {"count", "depends_on", "lifecycle"}
MEMBER = ("--agency-member", "group:a@b.com")
CASES = [
    ("small-aws", AGENCY),
    ("dev-aws", GITHUB),
    ("small-gcp", GITHUB),
    ("dev-gcp", ("--agency-member", "group:a@b.com")),
]


def file(stack: str, trust: tuple[str, ...], tmp_path: Path) -> dict[str, Any]:
    return dict(json.loads(printed(folder(tmp_path, stack), *trust, "--form", "terraform")))


def _names(kind: str) -> set[str]:
    """Arguments of a class; Pulumi gives lists a plural."""
    return set(inspect.signature(CLASSES[kind]._internal_init).parameters)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(one)


@pytest.mark.parametrize(("stack", "trust"), CASES, ids=[stack for stack, _ in CASES])
def test_arguments_are_those_of_the_provider_and_references_are_declared(
    stack: str, trust: tuple[str, ...], tmp_path: Path
) -> None:
    document = file(stack, trust, tmp_path)
    resources = document["resource"]
    for kind, made in resources.items():
        known = _names(kind)
        for name, arguments in made.items():
            assert re.fullmatch(r"[A-Za-z_][\w-]*", name)
            unknown = {one for one in arguments if not {one, f"{one}s", f"{one[:-1]}ies"} & known}
            assert unknown - META == set(), kind
    for text in _texts(document):
        for kind, name in re.findall(r"\$\{((?:aws|google)_\w+)\.([\w-]+)\.", text):
            assert name in resources[kind], text
        for kind, name in re.findall(r"\$\{data\.(\w+)\.([\w-]+)\.", text):
            assert name in document["data"][kind], text


APIS = {
    "data.google_storage_project_service_account": "storage",
    "google_essential_contacts_contact": "essentialcontacts",
    "google_iam_workload_identity_pool": "iam",
    "google_kms_key_ring": "cloudkms",
    "google_project_iam_custom_role": "iam",
    "google_project_iam_member": "cloudresourcemanager",
    "google_service_account": "iam",
    "google_storage_bucket": "storage",
}
"""The API of what is created first of each service."""


def test_resources_of_a_new_project_wait_for_their_apis(tmp_path: Path) -> None:
    document = file("small-gcp", GITHUB, tmp_path)
    data = {f"data.{kind}": made for kind, made in document["data"].items()}
    waits = {
        f"{kind}.{name}": {
            *arguments.get("depends_on", ()),
            *(
                one
                for text in _texts(arguments)
                for one in re.findall(r"\$\{((?:data\.)?\w+\.[\w-]+)\.", text)
            ),
        }
        for kind, made in {**document["resource"], **data}.items()
        for name, arguments in made.items()
    }

    def all_of(one: str) -> set[str]:
        return {one}.union(*map(all_of, waits.get(one, ())))

    for kind, api in APIS.items():
        for one in (one for one in waits if one.startswith(f"{kind}.")):
            assert f"google_project_service.{api}" in all_of(one), one


def test_providers_that_require_thumbprints_are_refused(tmp_path: Path) -> None:
    document = file("dev-aws", GITHUB, tmp_path)
    assert "thumbprint_list" not in document["resource"]["aws_iam_openid_connect_provider"]["pipeline"]
    version = document["terraform"]["required_providers"]["aws"]["version"]
    assert tuple(map(int, version.removeprefix(">= ").split("."))) >= (5, 81)


@pytest.mark.skipif(shutil.which("terraform") is None, reason="needs Terraform")
@pytest.mark.parametrize(("stack", "trust"), CASES[1:3], ids=[stack for stack, _ in CASES[1:3]])
def test_terraform_reads_the_file(stack: str, trust: tuple[str, ...], tmp_path: Path) -> None:
    """Up to the providers, whose schemas it would download."""
    place = tmp_path / "terraform"
    place.mkdir()
    (place / "main.tf.json").write_text(json.dumps(file(stack, trust, tmp_path)))
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "CHECKPOINT_DISABLE": "1"}
    command = ["terraform", "validate", "-json"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, env=env, check=False)
    found = json.loads(done.stdout)["diagnostics"]
    assert {one["summary"] for one in found} <= {"Missing required provider"}
