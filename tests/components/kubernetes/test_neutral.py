"""Components of every cluster name no cloud: a cloud's words reach them as values."""

import re
from pathlib import Path

import components.kubernetes as package

WORDS = re.compile(
    r"\b(aws|ec2|efa|efs|eks|arn|fsx|iam|s3|sns|gcp|gcs|gke|google|tcpxo?|azure)\b", re.IGNORECASE
)
# Data about all platforms: their peers, API groups that publish, interfaces of pods.
ABOUT_ALL = (
    *("platforms.toml", "network_policies.py", "monitoring/node_series.py"),
    *("queueing/exposure.py", "queueing/kueue_fields.py"),
)


def test_no_module_and_no_table_names_a_cloud() -> None:
    folder = Path(package.__file__).parent
    found = [
        f"{path.relative_to(folder)}:{number}: {line.strip()}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".toml") and str(path.relative_to(folder)) not in ABOUT_ALL
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if WORDS.search(line.replace("_", " "))
    ]
    assert found == []
