"""The report on a stack as one document; the page shows it and nothing else (pure)."""

from typing import Any

from trainstack.dossier import money, operation, policy, validation
from trainstack.dossier.architecture import document as architecture
from trainstack.dossier.facts import StackFacts

SCHEMA = "trainstack.report/1"


def document(facts: StackFacts) -> dict[str, Any]:
    """The document: plain JSON, without secrets, the same for the same facts."""
    validated = validation.document(facts)
    spec = facts.loaded.spec if facts.loaded else None
    return {
        "schema": SCHEMA,
        "stack": facts.stack,
        "at": f"{facts.at:%Y-%m-%dT%H:%M:%SZ}",
        "version": facts.version,
        "rehearsed": facts.rehearsed,
        "state": facts.state,
        "state_why": facts.why if facts.state in ("unknown", "absent") else "",
        "about": None
        if spec is None
        else {
            "cloud": spec.cloud,
            "region": spec.region,
            "profile": spec.profile,
            "environment": spec.environment,
            "owner": spec.owner,
            "cost_center": spec.cost_center,
            "data_class": spec.data_class,
            "expires_on": f"{spec.expires_on}",
            "teams": [one.name for one in spec.teams],
        },
        "problems": [{"code": one.code, "path": one.path, "text": str(one)} for one in facts.problems],
        "architecture": architecture.document(facts),
        "cost": money.cost_document(facts),
        "gpus": money.gpu_document(facts),
        "validation": validated,
        "policy": policy.document(facts),
        "deploy": operation.deploy_document(facts),
        "versions": operation.versions_document(facts),
        "drift": operation.drift_document(facts),
        "untested": operation.untested_document(facts, validated),
    }
