import copy

import pytest

from tests.infra.stackspec.stack_files import DATA, INTERACTIVE, TRAINING, Values


@pytest.fixture
def values() -> Values:
    """What a small but complete stack file says."""
    digest = "@sha256:" + "a" * 64
    return {
        "cloud": "aws",
        "profile": "medium",
        "region": "us-east-1",
        "spec": {
            "owner": "a@example.com",
            "cost_center": "research",
            "environment": "dev",
            "data_class": "internal",
            "expires_on": "2027-03-31",
            "layout": {
                "zones": ["us-east-1a", "us-east-1b"],
                "pools": [
                    {
                        "name": "a100",
                        "machine": "p4d.24xlarge",
                        "purpose": "training",
                        "purchase": {"kind": "on_demand"},
                        "zones": ["us-east-1b"],
                        "rdma": True,
                        "max_nodes": 4,
                    }
                ],
            },
            "on": {"account_id": "123456789012", "admin_arns": ["arn:aws:iam::123456789012:role/platform"]},
            "data": {"shared_fs": None},
            "teams": [{"name": "Research", "gpus": {"a100": 8}}],
            "budget": {"monthly_usd": 5000, "alert_emails": ["a@example.com"]},
            "tracking": {"image": "registry.example.com/mlflow" + digest},
            "smoke": {"image": "registry.example.com/torch" + digest},
        },
    }


@pytest.fixture
def gcp() -> Values:
    """What a small but complete stack file on Google Cloud says."""
    digest = "@sha256:" + "a" * 64
    return {
        "cloud": "gcp",
        "profile": "medium",
        "region": "us-central1",
        "spec": {
            "owner": "a@example.com",
            "cost_center": "research",
            "environment": "dev",
            "data_class": "internal",
            "expires_on": "2027-03-31",
            "layout": {
                "zones": ["us-central1-a", "us-central1-b"],
                "pools": [copy.deepcopy(TRAINING), copy.deepcopy(INTERACTIVE), copy.deepcopy(DATA)],
            },
            "on": {
                "project": "research-1",
                "billing_account": "012345-6789AB-CDEF01",
                "admins": ["group:platform@example.com"],
            },
            "data": {"shared_fs": None},
            "teams": [{"name": "Research", "gpus": {"h100": 8}, "members": ["user:ada@example.com"]}],
            "budget": {"monthly_usd": 5000, "alert_emails": ["a@example.com"]},
            "tracking": {"image": "registry.example.com/mlflow" + digest},
            "smoke": {"image": "registry.example.com/torch" + digest},
        },
    }
