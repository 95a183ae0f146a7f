"""Writes docs/reference/policies.md from the catalogue: `python -m policies.documentation`."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from policies.catalogue import Rule, in_order
from policies.frameworks.framework import Reference, by_rule, frameworks, without_control
from policies.rules import CATALOGUE
from policies.settings import Settings

FILE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "policies.md"
GROUPS = {
    "COST": "cost and budget",
    "GPU": "accelerators and pools",
    "IAM": "identity",
    "K8S": "what runs in a cluster",
    "NET": "networks and EFA",
    "REP": "reproducibility",
    "RES": "residency",
    "STO": "storage, encryption, retention",
    "TAG": "tags",
    "TRK": "tracking",
}
_HEAD = """# Policies

<!-- Written by `python -m policies.documentation`; a test holds it against the rules. -->

`trainstack audit` judges a whole stack without any cloud, from its state or from a preview, or
[an account](../how-to/live.md).

    pulumi stack export --stack NAME --file state.json
    trainstack audit --state state.json

    pulumi preview --stack NAME --json --show-sames > preview.json
    trainstack audit --preview preview.json

    trainstack audit --live aws --region us-east-1         # or --snapshot FILE, see live.md
    trainstack audit --live gcp --project PROJECT
    trainstack audit --live kubernetes

The Pulumi engine itself asks the same rules, in any project, as a [policy pack](../how-to/policy-pack.md):

    pulumi preview --policy-pack policies

`--format json` writes every outcome (schema `trainstack.audit/1`), `html` a page for people, `sarif`, `junit`
and `markdown` what code scanning, CI and pull requests show. `--fail-on high` counts what is as severe.
`--baseline` with a former report counts only what is new, `--evidence DIR` keeps what an
[auditor](../how-to/evidence.md) asks for. Accepted violations are listed in a file of
[waivers](../how-to/waivers.md). For an environment or a client, `--config FILE` says what differs:

    settings:
      production: false            # any of those below
    enforcement:                   # mandatory, advisory (told, and not counted) or disabled
      COST: advisory               # a group
      MLS-COST-02: mandatory       # or a rule, which counts more
    environments:                  # laid over it, with --environment NAME; then one has to be named
      production:
        settings: {production: true, allowed_regions: [eu-west-1]}
        enforcement: {COST: mandatory}

| exit code | meaning |
|---|---|
| 0 | clean |
| 1 | internal error |
| 2 | usage error, or a file that cannot be read |
| 3 | violations |
| 4 | no violation, but undetermined outcomes |
| 5 | only violations with expired waivers |

Other programs call `policies.run.audit` and get outcomes, reports and the exit code (`policies/run.py`,
`policies/exit_codes.py`).

A rule that needs a value which is a secret, or which only the deployment will tell, is **undetermined** and
names the value. It never passes. Secrets are not read, whatever the file shows. Events of a preview
(PULUMI_ENABLE_STREAMING_JSON_PREVIEW) do not tell what refers to what, so more is undetermined with them than
with the document.

Rules of stacks **for training** leave others alone: those without accelerators (in machines that the stack
starts, or that its pods ask for), queues of jobs, operators and jobs of training. Where the type of a machine
decides and nobody knows it, such a rule is undetermined.

The controls that a rule is evidence for are those of `policies/frameworks/tables/`; one with a question mark
is to be confirmed.
"""


def document() -> str:
    """The content of the file. Raises KeyError for a group without a title."""
    return "\n".join([_HEAD, *_settings(), *_groups()])


def _settings() -> Iterator[str]:
    yield "## Settings\n\n| name | value |\n|---|---|"
    for field in fields(Settings):
        value = getattr(Settings(), field.name)
        if not isinstance(value, datetime.date):
            if isinstance(value, bool):
                value = (str(value).lower(),)
            if isinstance(value, Mapping):
                value = tuple(f"{key}: {one}".replace("|", "\\|") for key, one in value.items())
            shown = ", ".join(f"`{one}`" for one in value) if isinstance(value, tuple) else f"{value:g}"
            yield f"| `{field.name}` | {shown or 'none'} |"
    yield "\nTheir reasons are in `policies/settings.py`.\n"


def _groups() -> Iterator[str]:
    rules = in_order(CATALOGUE.rules)
    controls = by_rule(frameworks(CATALOGUE.rules))
    for group in sorted({rule.group for rule in rules}):
        yield f"## {group}: {GROUPS[group]}\n"
        for rule in rules:
            if rule.group == group:
                yield from _section(rule, controls.get(rule.id, ()))


def _section(rule: Rule, controls: Sequence[Reference]) -> Iterator[str]:
    yield f"### {rule.id}\n"
    yield f"**{rule.title}**\n"
    yield f"{rule.rationale}\n"
    yield f"- severity {rule.severity}, decided by {_DECIDED[rule.scope]}"
    yield f"- about {', '.join(f'`{kind}`' for kind in rule.kinds)}"
    yield f"- fix: {rule.remediation}"
    if rule.references:
        yield f"- elsewhere: {', '.join(rule.references)}"
    told = [f"{one.label}{'' if one.verified else '?'}" for one in controls]
    yield f"- evidence for: {', '.join(told) or f'no control. {without_control()[rule.id]}'}"
    yield ""


_DECIDED = {"resource": "the resource alone", "stack": "the stack around it"}

if __name__ == "__main__":
    FILE.write_text(document())
