"""The way out of a stack: what a destroy removes, what survives it, what can be imported (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainstack.dossier.architecture.exposure import STORES, merged
from trainstack.dossier.architecture.parts import Row, is_counted, name_of, of_type
from trainstack.handover.imports import Imports
from trainstack.plans.losses import DATA
from trainstack.protection import protected

SCHEMA = "trainstack.exit-plan/1"


def document(resources: Sequence[Row], stack: str, found: Imports) -> dict[str, Any]:
    """Resources that a destroy is refused by, deletes and leaves, and those that the import files have."""
    rows = [row for row in resources if is_counted(row)]
    deleted = [row for row in rows if not row.get("retainOnDelete")]
    terraform = sum(bool(one.terraform) for one in found.adopted)
    return {
        "schema": SCHEMA,
        "stack": stack,
        "resources": len(rows),
        "destroy_refused_by": [{"path": one.path, "rule": one.rule} for one in protected(rows)],
        "deleted": dict(sorted(Counter(of_type(row["urn"]) for row in deleted).items())),
        "data_deleted": [
            {"name": name_of(row["urn"], stack), "kind": STORES.get(kind, kind), "with": DATA[kind]}
            for row in deleted
            if (kind := of_type(row["urn"])) in DATA
        ],
        "survives": [{"name": name, "why": why} for name, why in _survivors(rows, stack)],
        "imports": {"pulumi": len(found.adopted), "terraform": terraform},
        "not_imported": [
            {"name": name_of(urn, stack), "type": of_type(urn), "why": why} for urn, why in found.left
        ],
    }


def _survivors(rows: Sequence[Row], stack: str) -> Iterator[tuple[str, str]]:
    for row in rows:
        name, props = name_of(row["urn"], stack), merged(row)
        if row.get("retainOnDelete"):
            yield name, "the engine only forgets it (retainOnDelete): it stays, and is billed"
        elif props.get("deletionPolicy") == "ABANDON":
            yield name, "it is abandoned, not deleted (deletionPolicy)"
        elif why := _after(of_type(row["urn"]), props):
            yield name, why


def _after(kind: str, props: Mapping[str, Any]) -> str:
    """Rest of a resource that is deleted; empty for nothing."""
    why = ""
    match kind:
        case "aws:kms/key:Key":
            days = props.get("deletionWindowInDays") or 30
            why = f"unusable at once, deleted after {days} days, and can be recovered until then"
        case "gcp:kms/cryptoKey:CryptoKey" | "gcp:kms/keyRing:KeyRing":
            why = "Google Cloud never deletes key rings and keys; the versions of the key are destroyed"
        case "aws:secretsmanager/secret:Secret" if props.get("recoveryWindowInDays", 30):
            why = f"can be recovered for {props.get('recoveryWindowInDays', 30)} days"
        case "aws:rds/cluster:Cluster" if props.get("skipFinalSnapshot") is not True:
            why = "a final snapshot stays, and is billed"
        case "gcp:projects/service:Service" if props.get("disableOnDestroy") is not True:
            why = "the API stays enabled in the project"
        case "aws:s3/bucket:Bucket" | "gcp:storage/bucket:Bucket" if props.get("forceDestroy") is not True:
            why = "the destroy fails while it has objects: empty it first"
    return why
