"""Databases: Cloud SQL and BigQuery.

Shapes: google/services/sql/resource_sql_database_instance.go and
google/services/bigquery/resource_bigquery_dataset.go of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.gcp.assets import asset, assets, short, switch
from policies.sources.live.mapping import One, View, same

_SQL, _DATASET = "sqladmin.googleapis.com/Instance", "bigquery.googleapis.com/Dataset"
QUERIES = (assets(_SQL), assets(_DATASET))


def _master(view: View) -> Any:
    return str(view.at("masterInstanceName") or "").rpartition(":")[2] or None


KINDS = (
    asset(
        "gcp:sql/databaseInstance:DatabaseInstance",
        _SQL,
        {
            **same("databaseVersion", "instanceType", "name", "region", "selfLink"),
            "masterInstanceName": _master,
            "settings": One(
                "settings",
                {
                    **same("availabilityType", "edition", "tier", "userLabels"),
                    "backupConfiguration": One(
                        "backupConfiguration",
                        {
                            "enabled": switch("enabled"),
                            "location": "location",
                            "pointInTimeRecoveryEnabled": switch("pointInTimeRecoveryEnabled"),
                        },
                    ),
                    "deletionProtectionEnabled": switch("deletionProtectionEnabled"),
                    "ipConfiguration": One(
                        "ipConfiguration",
                        {
                            "ipv4Enabled": switch("ipv4Enabled"),
                            **same("privateNetwork", "sslMode"),
                        },
                    ),
                },
            ),
        },
        id=short,
        labels="",
        program_only=("deletionProtection",),
    ),
    asset(
        "gcp:bigquery/dataset:Dataset",
        _DATASET,
        {
            "datasetId": "datasetReference.datasetId",
            **same("description", "friendlyName", "location", "selfLink"),
        },
    ),
)
