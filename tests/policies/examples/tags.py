"""Examples of the rules TAG."""

from tests.policies.examples.gpu import BY_TEMPLATE, TEMPLATE, eks
from tests.policies.recording.example import DROP, Example, Made

_TAGS = {
    "owner": "ml-platform",
    "cost-center": "ml-research",
    "environment": "dev",
    "data-class": "internal",
    "expires-on": "2027-06-30",
}
_BUCKET = Made("aws:s3/bucket:Bucket", {"bucket": "train-data", "tags": _TAGS})
_LABELLED = Made("gcp:storage/bucket:Bucket", {"name": "train-data", "location": "US", "labels": _TAGS})
_LESS = {key: value for key, value in _TAGS.items() if key != "data-class"}
_OF_NODES = [{"resourceType": kind, "tags": {"owner": "ml-platform"}} for kind in ("instance", "volume")]
_POOL = BY_TEMPLATE.but(tags={"owner": "ml-platform"})
_DATABASE = Made(
    "aws:rds/cluster:Cluster",
    {
        "clusterIdentifier": "mlflow",
        "engine": "aurora-postgresql",
        "masterUsername": "mlflow",
        "manageMasterUserPassword": True,
        "skipFinalSnapshot": True,
        "copyTagsToSnapshot": True,
    },
)

EXAMPLES = {
    "MLS-TAG-01": Example({"data": _BUCKET}, {"data": _BUCKET.but(tags=_LESS)}, at="data", path="tags"),
    "MLS-TAG-01.gke": Example(
        {"data": _LABELLED},
        {"data": _LABELLED.but(labels={**_TAGS, "expires-on": "soon"})},
        at="data",
        path="tags.expires-on",
    ),
    "MLS-TAG-02": Example(
        eks(template=TEMPLATE.but(tagSpecifications=_OF_NODES), pool=_POOL),
        eks(template=TEMPLATE.but(tagSpecifications=_OF_NODES[:1]), pool=_POOL),
        at="pool",
        path="tags",
    ),
    "MLS-TAG-02.backups": Example(
        {"database": _DATABASE},
        {"database": _DATABASE.but(copyTagsToSnapshot=DROP)},
        at="database",
        path="copyTagsToSnapshot",
    ),
}
