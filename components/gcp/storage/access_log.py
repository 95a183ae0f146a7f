"""Access logs of a stack's buckets."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.ordering import after

_STORAGE = "storage.googleapis.com"
# Longest prefix of a log bucket's name.
_LONGEST = 100


class GcpAccessLogArgs(TypedDict):
    """The buckets, and retention of the log."""

    project: str
    """Id of the project."""
    region: str
    """Location of the log."""
    buckets: Sequence[pulumi.Input[str]]
    """Names of the buckets; the log's own name begins like that of the first."""
    retention_days: int
    """Days, 1 to 3650."""


class GcpAccessLog(Component):
    """Data Access audit logs of Cloud Storage, and a log bucket for those of the stack's buckets.

    Google recommends audit logs over the usage logs of buckets, which come hours late, without guarantee, and
    need a permission for a group of Google's own domain that many organizations forbid. They are enabled for
    the whole project, as a project has one such setting for a service. It stays when the stack is deleted:
    another stack may need it. Logs are billed by size, once for every log bucket, so these entries are
    excluded from the project's own `_Default`.

    Encrypted with Google's key: it holds names of people and objects, no content. A deleted log bucket keeps
    its name for seven days, so its name ends in the random characters of a bucket's. *Untested in a real
    project.*
    """

    bucket: pulumi.Output[str]
    """Name of the log bucket; dependents come after entries arrive in it."""

    def __init__(self, name: str, args: GcpAccessLogArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        project = args["project"]
        audit = gcp.projects.IAMAuditConfig(
            f"{name}-audit",
            project=project,
            service=_STORAGE,
            audit_log_configs=[{"log_type": "DATA_READ"}, {"log_type": "DATA_WRITE"}],
            opts=self.child(pulumi.ResourceOptions(retain_on_delete=True)),
        )
        bucket = gcp.logging.ProjectBucketConfig(
            f"{name}-bucket",
            project=project,
            location=args["region"],
            bucket_id=pulumi.Output.from_input(args["buckets"][0]).apply(
                lambda first: f"access-{first}"[:_LONGEST]
            ),
            retention_days=args["retention_days"],
            description="Who used which objects of the stack's buckets",
            opts=self.child(),
        )
        entries = pulumi.Output.all(*args["buckets"]).apply(lambda names: log_filter(project, names))
        sink = gcp.logging.ProjectSink(
            f"{name}-sink",
            project=project,
            destination=pulumi.Output.concat("logging.googleapis.com/", bucket.id),
            filter=entries,
            unique_writer_identity=True,  # within a project it needs no permission on the bucket
            opts=self.child(),
        )
        gcp.logging.ProjectExclusion(
            f"{name}-once",
            project=project,
            filter=entries,
            description="Kept in a log bucket of the stack",
            # Until then entries would be nowhere.
            opts=self.child(pulumi.ResourceOptions(depends_on=[sink])),
        )
        self.bucket = after(bucket.bucket_id, [audit, sink])
        self.register_declared()


def log_filter(project: str, buckets: Sequence[str]) -> str:
    """Entries about objects of these buckets (Cloud Audit Logs documentation, "Data Access audit logs")."""
    named = " OR ".join(f'"{bucket}"' for bucket in buckets)
    return (
        f'logName="projects/{project}/logs/cloudaudit.googleapis.com%2Fdata_access"'
        f' AND resource.type="gcs_bucket" AND resource.labels.bucket_name=({named})'
    )
