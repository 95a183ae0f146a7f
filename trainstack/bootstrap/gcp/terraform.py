"""The project's resources as a Terraform configuration in JSON."""

import json
from typing import Any

from trainstack.bootstrap.gcp.project import (
    BILLING_ROLE,
    CATEGORY,
    KEY,
    KEY_RING,
    KEY_ROLE,
    PROVIDER,
    GcpProject,
    Identity,
    assuming,
    is_of_pool,
    principal,
)
from trainstack.bootstrap.trust import Pipeline, variable

_KEPT = {"prevent_destroy": True}
Resources = dict[str, dict[str, Any]]


def render(project: GcpProject) -> str:
    """The file, for `main.tf.json`."""
    name, region = project.place.name, project.place.region
    resources, outputs = _state(project), {"backend": {"value": f"gs://{project.bucket}"}}
    resources["google_project_service"] = {
        api.partition(".")[0]: {"project": name, "service": api, "disable_on_destroy": False}
        for api in project.apis
    }
    resources["google_essential_contacts_contact"] = {
        f"budget_{number}": {
            "parent": f"projects/{name}",
            "email": address,
            "language_tag": "en",
            "notification_category_subscriptions": [CATEGORY.upper()],
            **_after("essentialcontacts"),
        }
        for number, address in enumerate(project.place.emails, 1)
    }
    if isinstance(project.trust, Pipeline):
        resources |= _federation(project, project.trust)
        name_of_provider = "${google_iam_workload_identity_pool_provider.pipeline.name}"
        outputs |= {
            variable(PROVIDER, one.name): {"value": name_of_provider}
            for one in project.place.deployed
            if assuming(one) is None
        }
    for one in project.identities():
        for kind, made in _identity(project, one).items():
            resources.setdefault(kind, {}).update(made)
    found: dict[str, Any] = {
        "terraform": {
            "required_version": ">= 1.5",
            "required_providers": {"google": {"source": "hashicorp/google", "version": ">= 6.0"}},
        },
        "provider": {"google": {"project": name, "region": region}},
        "data": {
            "google_storage_project_service_account": {"agent": {"project": name, **_after("storage")}},
        },
        "resource": resources,
        "output": outputs,
    }
    return json.dumps(found, indent=1) + "\n"


def _state(project: GcpProject) -> Resources:
    name, region = project.place.name, project.place.region
    key = "${google_kms_crypto_key.state.id}"
    agent = "serviceAccount:${data.google_storage_project_service_account.agent.email_address}"
    bucket = {
        "project": name,
        "name": project.bucket,
        "location": region,
        "uniform_bucket_level_access": True,
        "public_access_prevention": "enforced",
        "versioning": {"enabled": True},
        "encryption": {"default_kms_key_name": key},
        "lifecycle": _KEPT,
        "depends_on": ["google_kms_crypto_key_iam_member.agent"],
    }
    ring = {
        "project": name,
        "name": KEY_RING,
        "location": region,
        **_after("cloudkms"),
    }
    state = {
        "name": KEY,
        "key_ring": "${google_kms_key_ring.state.id}",
        "rotation_period": "7776000s",
        "lifecycle": _KEPT,
    }
    return {
        "google_kms_key_ring": {"state": ring},
        "google_kms_crypto_key": {"state": state},
        "google_kms_crypto_key_iam_member": {
            "agent": {"crypto_key_id": key, "role": KEY_ROLE, "member": agent}
        },
        "google_storage_bucket": {"state": bucket},
    }


def _federation(project: GcpProject, trust: Pipeline) -> Resources:
    pool = {"project": project.place.name, "workload_identity_pool_id": project.pool, **_after("iam")}
    pool_id = "${google_iam_workload_identity_pool.pipeline.workload_identity_pool_id}"
    provider = {
        "project": project.place.name,
        "workload_identity_pool_id": pool_id,
        "workload_identity_pool_provider_id": "pipeline",
        "attribute_mapping": project.attributes(trust),
        "attribute_condition": project.condition(trust),
        "oidc": {"issuer_uri": trust.issuer},
    }
    return {
        "google_iam_workload_identity_pool": {"pipeline": pool},
        "google_iam_workload_identity_pool_provider": {"pipeline": provider},
    }


def _identity(project: GcpProject, one: Identity) -> Resources:
    name, word = project.place.name, one.account
    member = f"serviceAccount:${{google_service_account.{word}.email}}"
    account = f"${{google_service_account.{word}.name}}"
    pool = "principal://iam.googleapis.com/${google_iam_workload_identity_pool.pipeline.name}"
    key, bucket = "${google_kms_crypto_key.state.id}", "${google_storage_bucket.state.name}"
    role = {
        "project": name, "role_id": one.role, "title": one.title, "permissions": one.permissions,
        **_after("iam"),
    }  # fmt: skip
    granted = {
        "project": name, "role": f"${{google_project_iam_custom_role.{word}.id}}", "member": member,
        **_after("cloudresourcemanager"),
    }  # fmt: skip
    used = {
        _numbered(word, number): {
            "service_account_id": account,
            "role": one.use,
            "member": principal(pool, who) if is_of_pool(who) else who,
        }
        for number, who in enumerate(one.members)
    }
    state = {}
    for number, (state_role, condition) in enumerate(one.bucket):
        state[_numbered(word, number)] = {"bucket": bucket, "role": state_role, "member": member} | (
            {"condition": {"title": "Own objects", "expression": condition}} if condition else {}
        )
    return {
        "google_service_account": {
            word: {"project": name, "account_id": word, "display_name": one.title, **_after("iam")}
        },
        "google_project_iam_custom_role": {word: role},
        "google_project_iam_member": {word: granted},
        "google_billing_account_iam_member": {
            f"{word}-{number}": {"billing_account_id": billing, "role": BILLING_ROLE, "member": member}
            for number, billing in enumerate(project.billing_accounts if one.deploys else (), 1)
        },
        "google_storage_bucket_iam_member": state,
        "google_kms_crypto_key_iam_member": {word: {"crypto_key_id": key, "role": one.key, "member": member}},
        "google_service_account_iam_member": used,
    }


def _after(api: str) -> dict[str, list[str]]:
    """Creation after an API is enabled: a new project has few."""
    return {"depends_on": [f"google_project_service.{api}"]}


def _numbered(word: str, number: int) -> str:
    return f"{word}-{number + 1}" if number else word
