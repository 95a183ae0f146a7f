"""The lists of AWS that grow, for `tools.aws_values`: machine types, versions, runtimes, managed policies."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore.session
from moto.iam.aws_managed_policies import aws_managed_policies_data

# List -> prefix, suffix, file of cfn-lint's extensions with the machine types of each region.
_MACHINES = {
    "ec2": ("", "", "aws_ec2_instance/instancetype_enum"),
    "emr": ("", "", "aws_emr_cluster/instancetypeconfig_instancetype_enum"),
    "elasticache": ("cache.", "", "aws_elasticache_cachecluster/cachenodetype_enum"),
    "opensearch": ("", ".search", "aws_opensearchservice_domain/clusterconfig_instancetype_enum"),
    "elasticsearch": (
        "",
        ".elasticsearch",
        "aws_elasticsearch_domain/elasticsearchclusterconfig_instancetype_enum",
    ),
    "redshift": ("", "", "aws_redshift_cluster/nodetype_enum"),
    "dax": ("dax.", "", "aws_dax_cluster/nodetype_enum"),
    "docdb": ("db.", "", "aws_docdb_dbinstance/dbinstanceclass_enum"),
    "neptune": ("db.", "", "aws_neptune_dbinstance/dbinstanceclass_enum"),
    "mq": ("mq.", "", "aws_amazonmq_broker/instancetype_enum"),
    "sagemaker hosting": ("ml.", "", "aws_sagemaker_hosting/instancetype_enum"),
}
# List -> prefix, service of botocore, its enum.
_ENUMS = {
    "ec2": ("", "ec2", "InstanceType"),
    "opensearch": ("", "opensearch", "OpenSearchPartitionInstanceType"),
    "sagemaker hosting": ("ml.", "sagemaker", "ProductionVariantInstanceType"),
    "sagemaker notebook": ("ml.", "sagemaker", "InstanceType"),
}
_RDS = "aws_rds_dbinstance/dbinstanceclass_enum"
_RDS_CLUSTER = "aws_rds_dbcluster/dbclusterinstanceclass_enum"
# Service -> files with the versions of engines that are served, and of those that are not any more.
_VERSIONS = {
    "rds": ("aws_rds_dbinstance/engine_version", "aws_rds_dbinstance/engine_version_deprecated"),
    "rds cluster": ("aws_rds_dbcluster/engine_version", "aws_rds_dbcluster/engine_version_deprecated"),
    "elasticache": ("aws_elasticache_cachecluster/engine_version", ""),
}
# Classes that are not a machine of a size.
_OTHER = ("db.serverless",)


def lists(data: Path) -> dict[str, Any]:
    """Every list by its kind."""
    return {
        "machines": dict(_machines(data)),
        "versions": dict(_versions(data)),
        "runtimes": _runtimes(data),
        "policies": _policies(),
    }


def _machines(data: Path) -> Iterator[tuple[str, Any]]:
    for name in sorted({*_MACHINES, *_ENUMS}):
        prefix, suffix, found = "", "", set()
        if name in _MACHINES:
            prefix, suffix, file = _MACHINES[name]
            found |= {one for _, _, one in _by_engine(data, file)}
        if name in _ENUMS:
            prefix, service, shape = _ENUMS[name]
            found |= set(botocore.session.get_session().get_service_model(service).shape_for(shape).enum)
        yield name, _packed(found, prefix, suffix)
    classes: dict[str, set[str]] = {}
    for file in (_RDS, _RDS_CLUSTER):
        for path, engine, one in _by_engine(data, file):
            del path
            classes.setdefault(engine, set()).add(one)
    for engine, found in sorted(classes.items()):
        yield f"rds {engine}", _packed(found, "db.", "")


def _packed(names: set[str], prefix: str, suffix: str) -> dict[str, Any]:
    families: dict[str, list[str]] = {}
    for name in sorted(names - set(_OTHER)):
        plain = name.removeprefix(prefix).removesuffix(suffix)
        if name == f"{prefix}{plain}{suffix}":
            family, _, size = plain.partition(".")
            families.setdefault(family, []).append(size)
    packed = {family: " ".join(sizes) for family, sizes in families.items()}
    words = {key: value for key, value in (("prefix", prefix), ("suffix", suffix)) if value}
    return {**words, "families": packed}


def _by_engine(data: Path, file: str) -> Iterator[tuple[str, str, str]]:
    """(region, engine, value) of a list by region; the engine is empty where the list has none."""
    content = _extension(data, file)
    regions = content if "us-east-1" in content else {"": content}
    for region, schema in regions.items():
        for row in () if isinstance(schema, str) else schema.get("allOf", [schema]):
            given = row.get("if", {}).get("properties", {}).get("Engine", {})
            engines = [given["const"]] if "const" in given else given.get("enum", [""])
            for values in _enums(row.get("then", row)):
                yield from ((region, engine, str(value)) for engine in engines for value in values)


def _retired(data: Path, file: str) -> Iterator[tuple[str, str]]:
    """(engine, version) of versions of which a service makes no new instance."""
    for row in _extension(data, file)["allOf"]:
        given = row["if"]["properties"]
        yield from ((given["Engine"]["const"], str(value)) for value in given["EngineVersion"]["enum"])


def _enums(schema: Any) -> Iterator[list[Any]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("enum"), list):
            yield schema["enum"]
        for item in schema.values():
            yield from _enums(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _enums(item)


def _versions(data: Path) -> Iterator[tuple[str, list[str]]]:
    for service, (served, retired) in _VERSIONS.items():
        found: dict[str, set[str]] = {}
        for _, engine, value in _by_engine(data, served):
            if engine:
                found.setdefault(engine, set()).add(value)
        gone = set(_retired(data, retired)) if retired else set()
        for engine, values in sorted(found.items()):
            left = {value for value in values if (engine, value) not in gone}
            yield f"{service} {engine}", sorted(left)


def _runtimes(data: Path) -> dict[str, dict[str, str]]:
    rows = json.loads(
        (data.parent / "AdditionalSpecs" / "LmbdRuntimeLifecycle.json").read_text(encoding="utf-8")
    )
    ends: dict[str, dict[str, str]] = {}
    for name, row in rows.items():
        days = (("create", row["create-block"]), ("update", row["update-block"]))
        ends[name] = {key: day for key, day in days if day}
        if row["successor"]:
            ends[name]["successor"] = row["successor"]
    listed = botocore.session.get_session().get_service_model("lambda").shape_for("Runtime").enum
    return {name: ends.get(name, {}) for name in sorted({*ends, *listed})}


def _policies() -> dict[str, str]:
    rows: Mapping[str, Mapping[str, Any]] = json.loads(aws_managed_policies_data)
    return {name: str(row["Path"]).lstrip("/") for name, row in sorted(rows.items())}


def _extension(data: Path, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / "extensions" / f"{file}.json").read_text(encoding="utf-8"))
    return found
