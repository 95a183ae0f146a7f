"""The clouds of new clients, by name."""

from collections.abc import Mapping

from infra.stackspec.supported import SUPPORTED
from trainstack.stamp import aws, gcp
from trainstack.stamp.cloud import StampedCloud

STAMPED: Mapping[str, StampedCloud] = {"aws": aws.STAMPED, "gcp": gcp.STAMPED}
PAIRS = frozenset((profile, name) for name, cloud in STAMPED.items() for profile in cloud.shipped)
"""Pairs of profile and cloud of new clients. Others are written by hand, from a shipped stack file: a client
with several clusters has more than one file of an environment."""
assert PAIRS <= SUPPORTED
