"""What AWS refuses, service by service. Limits of single values are rows in `limits/*.toml`."""

from rehearsal.aws.rules import (
    billing,
    compute,
    eks,
    eks_network,
    files,
    gateways,
    iam,
    keys,
    limits,
    lustre,
    messages,
    network,
    nodes,
    nodes_efa,
    rds,
    s3,
    s3_lifecycle,
    sagemaker,
    security,
    tags,
)
from rehearsal.aws.rules.book import BOOK

__all__ = ["BOOK"]

# Importing a module of rules puts them into the book.
MODULES = (
    billing, compute, eks, eks_network, files, gateways, iam, keys, limits, lustre, messages, network, nodes,
    nodes_efa, rds, s3, s3_lifecycle, sagemaker, security, tags,
)  # fmt: skip
