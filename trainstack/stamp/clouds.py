"""The clouds of new clients, by name."""

from collections.abc import Mapping

from infra.stackspec.supported import SUPPORTED
from trainstack.stamp import aws, gcp
from trainstack.stamp.cloud import StampedCloud

STAMPED: Mapping[str, StampedCloud] = {"aws": aws.STAMPED, "gcp": gcp.STAMPED}
assert {(profile, name) for name, cloud in STAMPED.items() for profile in cloud.shipped} == SUPPORTED
