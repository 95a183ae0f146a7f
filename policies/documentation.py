"""Write docs/reference/policies.md from the catalog: `python -m policies.documentation`."""

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from infra.exit_codes import OF_COMMAND
from policies.catalog import PolicyRule, in_order
from policies.frameworks.framework import ControlReference, by_rule, frameworks, without_control
from policies.frameworks.proposals import proposals
from policies.rules import CATALOG
from policies.settings import RuleSettings

FILE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "policies.md"
GROUPS = {
    "COST": "cost and budget",
    "GPU": "accelerators and pools",
    "IAM": "identity",
    "K8S": "workloads of a cluster",
    "NET": "networks and EFA",
    "REP": "reproducibility",
    "RES": "residency",
    "STO": "storage, encryption, retention",
    "TAG": "tags",
    "TRK": "tracking",
}
_HEAD = """# Policies

<!-- Written by `python -m policies.documentation`; a test compares it with the rules. -->

`trainstack audit` judges a whole stack without access to a cloud, from its state or a preview, or
[an account](../how-to/live.md) or a cluster.

    pulumi stack export --stack NAME --file state.json
    trainstack audit --state state.json                    # or --stack NAME: read the state from its backend

    pulumi preview --stack NAME --json --show-sames > preview.json
    trainstack audit --preview preview.json

    trainstack audit --live aws --region us-east-1         # or --snapshot FILE, see live.md
    trainstack audit --live gcp --project PROJECT
    trainstack audit --live kubernetes

The Pulumi engine runs the same rules, in any project, as a [policy pack](../how-to/policy-pack.md):

    pulumi preview --policy-pack policies

`--format json` writes every outcome (schema `trainstack.audit/1`), `html` a page for a browser, and `sarif`,
`junit` and `markdown` reports for code scanning, CI and pull requests. With `--fail-on high`, only severities
high and critical count. With `--baseline` and a former report, only new violations count. `--evidence DIR`
writes a bundle for an [auditor](../how-to/evidence.md). Accepted violations are listed in a file of
[waivers](../how-to/waivers.md). `--config FILE` sets what differs for an environment or a client:

    settings:
      production: false            # any of those below
    enforcement:                   # mandatory, advisory (reported, but not counted) or disabled
      COST: advisory               # a group
      MLS-COST-02: mandatory       # or a rule, which takes precedence
    environments:                  # overrides, with --environment NAME, which is then required
      production:
        settings: {production: true, allowed_regions: [eu-west-1]}
        enforcement: {COST: mandatory}

{exit_codes}

Other programs call `policies.run.audit` and get outcomes, reports and the exit code (`policies/run.py`,
`infra/exit_codes.py`).

A rule that needs a secret, or a value that is known only after the deployment, is **undetermined** and names
the value. It never passes. Secrets are never read. Events of a preview (PULUMI_ENABLE_STREAMING_JSON_PREVIEW)
have no references between resources, so more is undetermined with them than with the document.

A rule judges what the cloud does with a document, in any notation: lists of exceptions, wildcards, letter
case, empty blocks, settings of another resource. [ADR 84](../adr/0084-rules-judge-what-a-document-means.md)
has the verdicts that changed. A setting of a resource that is not in the stack is judged by itself; what a
resource elsewhere decides is undetermined.

Rules for stacks **for training** do not apply to other stacks: those without accelerators (in machines of the
stack, or in requests of its pods), job queues, training operators and training jobs. If the decision needs an
unknown machine type, such a rule is undetermined.

**AWS Parallel Computing Service.** Its groups of nodes are judged by their launch templates: accelerators
(MLS-GPU-01), EFA interfaces and their security group (MLS-NET-01, MLS-NET-02), public addresses
(MLS-NET-06), the metadata service (MLS-IAM-05), encrypted disks (MLS-STO-09) and their type (MLS-COST-06).
Such a stack is for training, so it needs a budget with alerts (MLS-COST-01, MLS-COST-04); network, buckets,
file systems, keys, roles and logs are judged as in any stack. In a preview, what depends on a group is
undetermined, as ids are not known yet. Not judged yet: number and price of nodes at maximum size
(MLS-COST-02, MLS-GPU-02), nodes that always run (MLS-COST-03, MLS-GPU-04, MLS-GPU-05), the tag in the filter
of a budget (MLS-COST-09), zones and placement groups (MLS-NET-03, MLS-NET-04), tags of instances (MLS-TAG-01,
MLS-TAG-02), and the settings of Slurm.
Rules K8S, and those about labels, taints and drivers of pools, are about Kubernetes alone. An account is not
asked for groups of the service.

**Idle GPUs on Google Cloud.** MLS-COST-03 is about AWS alone. Pools of GKE that always run are judged by
MLS-GPU-04 and MLS-GPU-05. Not judged: whether an instance of Vertex AI Workbench stops when it is idle, and
endpoints of Vertex AI. MLS-COST-02 judges the sum of all pools of a stack on both clouds.

**Access.** MLS-IAM-01 is about policies that allow everything, not about ways to get there: `iam:*` or
`iam:PassRole` with a service that runs code pass. Such rights are those of a deployer, whose own role needs
them; `trainstack bootstrap` bounds that role by conditions and a permissions boundary, which no rule can
ask of every role. `allUsers` and `allAuthenticatedUsers` are judged by MLS-IAM-09 for projects, folders and
organizations with any role, by MLS-IAM-04 for service accounts, and by MLS-STO-01 for buckets. Policies of
resources are judged for roles (MLS-IAM-04), buckets (MLS-STO-01), and keys, secrets, queues, topics,
repositories and permissions of functions (MLS-IAM-09). Not judged: those of EFS, which its network bounds
(AWS's own sample names everybody, with a condition on the mount target), of S3 access points, of public
repositories and of services of Cloud Run and Cloud Functions, which are often public by intent, and the ACL
of an object of S3. A live audit reads no policy of a resource; a state and a preview have them. S3 counts a
fixed part of an ARN as public where a wildcard follows; MLS-STO-01 accepts it if the account is fixed.
MLS-NET-05 does not judge the DNS endpoint of GKE, which admits by IAM from every network. MLS-NET-07 judges
each rule of a firewall by itself, without priorities, and reads no address groups, countries or lists of
threats.

The controls that a rule is evidence for are in `policies/frameworks/tables/`; one with a question mark is to
be confirmed.
"""


def document() -> str:
    """The content of the file. Raises KeyError for a group without a title."""
    return "\n".join([_HEAD.replace("{exit_codes}", _exit_codes()), *_settings(), *_groups(), *_proposals()])


def _exit_codes() -> str:
    rows = (f"| {int(code)} | {text} |" for code, text in sorted(OF_COMMAND["audit"].items()))
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows])


def _settings() -> Iterator[str]:
    yield "## Settings\n\n| name | value |\n|---|---|"
    for field in fields(RuleSettings):
        value = getattr(RuleSettings(), field.name)
        if not isinstance(value, datetime.date):
            if isinstance(value, bool):
                value = (str(value).lower(),)
            if isinstance(value, str):
                value = (value,) if value else ()
            if isinstance(value, Mapping):
                value = tuple(f"{key}: {one}".replace("|", "\\|") for key, one in value.items())
            shown = ", ".join(f"`{one}`" for one in value) if isinstance(value, tuple) else f"{value:g}"
            yield f"| `{field.name}` | {shown or 'none'} |"
    yield "\nThe reasons are in `policies/settings.py`.\n"


def _groups() -> Iterator[str]:
    rules = in_order(CATALOG.rules)
    controls = by_rule(frameworks(CATALOG.rules))
    for group in sorted({rule.group for rule in rules}):
        yield f"## {group}: {GROUPS[group]}\n"
        for rule in rules:
            if rule.group == group:
                yield from _section(rule, controls.get(rule.id, ()))


def _section(rule: PolicyRule, controls: Sequence[ControlReference]) -> Iterator[str]:
    yield f"### {rule.id}\n"
    yield f"**{rule.title}**\n"
    yield f"{rule.rationale}\n"
    yield f"- severity {rule.severity}, judged by {_DECIDED[rule.scope]}"
    yield f"- kinds {', '.join(f'`{kind}`' for kind in rule.kinds)}"
    yield f"- fix: {rule.remediation}"
    if rule.references:
        yield f"- references: {', '.join(rule.references)}"
    labels = [f"{one.label}{'' if one.verified else '?'}" for one in controls]
    yield f"- evidence for: {', '.join(labels) or f'no control. {without_control()[rule.id]}'}"
    yield ""


def _proposals() -> Iterator[str]:
    found = proposals()
    yield f"## {found.name}\n"
    counts = Counter(one.status for one in found.checks)
    yield (
        f"{len(found.checks)} of its {found.candidates} candidates: {counts['has']} covered,"
        f" {counts['partly']} in part, {counts['not']} not. Source: {found.source}.\n"
    )
    yield "| check | control | here | rules, or the reason |\n|---|---|---|---|"
    for one in found.checks:
        rules = f"{', '.join(one.rules)}. " if one.rules else ""
        yield f"| `{one.name}` (#{one.issue}) | {one.control} | {one.status} | {rules}{one.why} |"
    yield ""


_DECIDED = {"resource": "the resource", "stack": "the resource and its stack"}

if __name__ == "__main__":
    FILE.write_text(document())
