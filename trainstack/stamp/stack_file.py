"""The stack file of an environment of a client, from the shipped stack file that is nearest."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from infra.places import PACKAGES
from trainstack.stamp.choices import ClientChoices
from trainstack.stamp.clouds import STAMPED
from trainstack.stamp.environment import SCHEMA

_FOLDER = PACKAGES / "stacks"
SLURM = "large-slurm"
"""The profile with Slurm."""
_PLAIN = re.compile(r"[A-Za-z][\w.+]*[@-][\w.@+-]*\w", re.ASCII)
"""Text that is a string in YAML without quotes."""
_POOL = re.compile(r"(?ms)(?P<before>machine: (?P<machine>[\w.-]+).*?^ {10}zones: \[)(?P<zones>[^\]]+)\]")
_FIRST_POOL = re.compile(
    r"(?m)(?<=^      pools:\n)        - name: (?P<name>\S+)\n(?:          .*\n)*?"
    r"          zones: \[(?P<zones>[^\]]+)\].*\n(?:          .*\n)*"
)
_ALLOWED = re.compile(r"(?m)^(?P<key> +allowed_accelerators: )\[(?P<names>[^\]]+)\]$")
_IN_LAYER = ("owner", "cost_center", "alert_emails")
"""What all environments share: the layer of the client has it."""
_OF_PROD: Mapping[str, str] = {
    "environment": "prod # policies require protection against deletion",
    "protect": "true # `trainstack destroy` is refused until it is false",
    "on_destroy": "keep # a final snapshot, backups; buckets with objects stop a destroy",
}
_HEAD = """\
# yaml-language-server: $schema={schema}
# The environment {environment} of {choices.name}: profile {choices.profile} on {choices.cloud}.
# Replace the teams and what is marked as an example. Values that are not here come from the layer
# clients/{choices.name}.yaml and from the profile: `trainstack explain -s {stack}` lists all, with reasons.
"""


def text(choices: ClientChoices, environment: str) -> str:
    """The text of a stack file; comments of the shipped one stay."""
    body = _shipped(choices.profile, choices.cloud)
    for key in _IN_LAYER:
        body = re.sub(rf"(?m)^\s+{key}: .*\n", "", body, count=1)
    body = _in_region(body, choices)
    body = body.replace(
        "  trainstack:spec:\n",
        f"  trainstack:client: {choices.name} # what all environments share: clients/{choices.name}.yaml\n"
        "  trainstack:spec:\n",
        1,
    )
    body = _set(body, "monthly_usd", str(choices.budget), above="budget")
    # Budgets of the example's teams and people are no larger than the whole.
    body = re.sub(
        r"\bmonthly_usd: (\d+)", lambda one: f"monthly_usd: {min(int(one[1]), choices.budget)}", body
    )
    if environment == "prod":
        for key, value in _OF_PROD.items():
            body, count = re.subn(rf"(?m)^(\s+{key}: ).*$", rf"\g<1>{value}", body, count=1)
            assert count == 1, f"the shipped file has no {key}"
    if re.search(r"(?m)^ +cluster_id: ", body):
        # Ids of Slurm systems are of their project, which environments may share.
        body = _set(body, "cluster_id", environment)
    body = _in_account(body, choices)
    if choices.machine:
        body = _with_machine(body, choices)
    head = _HEAD.format(
        schema=SCHEMA, environment=environment, choices=choices, stack=choices.stack(environment)
    )
    return head + body


def layer(choices: ClientChoices) -> str:
    """The text of the client's layer."""
    owner = quoted(choices.owner)
    return f"""\
# The layer of {choices.name}, between the profile and the stack files: values that its environments share.
owner: {owner} # a tag on every resource
cost_center: {choices.name}
tags:
  client: {choices.name} # splits one bill between clients
budget:
  alert_emails: [{owner}]
"""


def policy_settings(choices: ClientChoices) -> str:
    """Settings of the policies that the nearest shipped stack needs, as lines below its name; or nothing."""
    text = (_FOLDER / "audit.yaml").read_text(encoding="utf-8")
    name = STAMPED[choices.cloud].shipped[choices.profile]
    found = re.search(rf"(?m)^  {name}:\n((?:    .*\n)+)", text)
    return _ALLOWED.sub(lambda one: _with_accelerators(one, choices), found[1]) if found else ""


def _with_accelerators(allowed: re.Match[str], choices: ClientChoices) -> str:
    """The line of allowed accelerators with those of machines that a region or advice brought."""
    cloud, names = STAMPED[choices.cloud], allowed["names"].split(", ")
    machines = re.findall(r"\bmachine: (?:ml\.)?([\w.-]+)", text(choices, "dev"))
    more = sorted({cloud.accelerator(one) for one in machines} - {"", *names})
    why = f" # {', '.join(more)}: machines of the stack files" if more else ""
    return f"{allowed['key']}[{', '.join((*names, *more))}]{why}"


def first_pool(choices: ClientChoices) -> str:
    """The first pool, which trains and is validated on a schedule; empty without a cluster of Kubernetes."""
    if choices.profile == SLURM:
        return ""  # the cron of a login node repeats validations
    found = re.search(r"(?m)^      pools:\n        - name: (\S+)$", text(choices, "dev"))
    return found[1] if found else ""


def completed(choices: ClientChoices) -> ClientChoices:
    """The choices, empty ones as in the nearest shipped stack. Raises KeyError for an unsupported pair."""
    body = _shipped(choices.profile, choices.cloud)
    return replace(
        choices,
        region=choices.region or _region(body),
        owner=choices.owner or re.findall(r"^    owner: (\S+)$", body, re.MULTILINE)[0],
        budget=choices.budget
        or int(re.findall(r"^    budget:\n      monthly_usd: (\d+)$", body, re.MULTILINE)[0]),
    )


def _region(body: str) -> str:
    (region,) = re.findall(r"^  trainstack:region: (\S+)$", body, re.MULTILINE)
    return str(region)


def quoted(text: str) -> str:
    """A string of YAML."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _shipped(profile: str, cloud: str) -> str:
    path = _FOLDER / "config" / f"Pulumi.{STAMPED[cloud].shipped[profile]}.yaml"
    text = path.read_text(encoding="utf-8")
    return text[text.index("config:") :]


def _in_region(body: str, choices: ClientChoices) -> str:
    """Zones, registries and addresses of a region have its name in theirs."""
    old, new = _region(body), choices.region
    if new == old:
        return body
    cloud = STAMPED[choices.cloud]
    known = cloud.regions
    if new in known:
        zones = zip(known[old].zones, known[new].zones, strict=False)
        for old_zone, new_zone in zones:
            body = re.sub(rf"\b{old_zone}\b", f"<{new_zone}>", body)
        body = re.sub(r"<([a-z0-9-]+)>", r"\1", body.replace(old, new))
        return _POOL.sub(lambda found: _where_offered(found, choices), cloud.substitute(body, new))
    return _set(body, "trainstack:region", quoted(new))


def _where_offered(pool: re.Match[str], choices: ClientChoices) -> str:
    """The text of a pool with zones that offer its machine."""
    cloud, zones = STAMPED[choices.cloud], pool["zones"].split(", ")
    offered = cloud.offering_zones(pool["machine"], choices.region) or ()
    return pool["before"] + ", ".join(cloud.pool_zones(zones, offered)) + "]"


def _in_account(body: str, choices: ClientChoices) -> str:
    if not choices.account:
        return body
    key = STAMPED[choices.cloud].account_key
    (example,) = re.findall(rf'^      {key}: "?([\w-]+)"?', body, re.MULTILINE)
    body = re.sub(rf"(?m)^(      {key}: \S+ # )an example[;,] (and )?", r"\1", body)
    return body.replace(example, choices.account)


def _with_machine(body: str, choices: ClientChoices) -> str:
    """The machine of advice: in place of the first pool, which trains, or in front of the other machines."""
    purchase = f"purchase: {{kind: {choices.market}}} # by `trainstack advise`"
    nodes = max(2, choices.nodes)  # as many as a validation of training runs on
    cloud, above = STAMPED[choices.cloud], "      machines:\n"
    if above in body:
        machine = f"{cloud.jobs_prefix}{choices.machine}"
        first = f"        - name: advised\n          machine: {machine}\n          {purchase}\n"
        return body.replace(above, f"{above}{first}          max_nodes: {nodes}\n", 1)
    pool = _FIRST_POOL.search(body)
    assert pool is not None, "the shipped file has no pools"
    offered = cloud.offering_zones(choices.machine, choices.region) or ()
    zone, rdma = cloud.training_zone(pool["zones"].split(", "), offered), choices.nodes > 1 and cloud.rdma
    lines = [f"machine: {choices.machine}", "purpose: training", purchase, f"zones: [{zone}]"]
    lines += [f"rdma: {str(rdma).lower()}", "min_nodes: 0", f"max_nodes: {nodes}", "disk_gib: 500"]
    made = "        - name: advised\n" + "".join(f"          {line}\n" for line in lines)
    body = body[: pool.start()] + made + body[pool.end() :]
    name = re.escape(pool["name"])
    body = re.sub(rf"(?m)^(      pools:\n        ){name}: ", r"\1advised: ", body)
    # Guarantees were for the replaced pool; teams borrow the machines of the new one.
    return re.sub(rf"(gpus: {{){name}: \d+, ", r"\1", body)


def _set(text: str, key: str, value: str, above: str = "") -> str:
    """Set the first line of a key, or the first below another one; its comment stays."""
    before = rf"^\s+{above}:\n" if above else "^"
    form = rf"(?m)({before}\s+{re.escape(key)}: )(\[.*?\]|[^\s#]+)"
    changed, count = re.subn(form, lambda found: found[1] + value, text, count=1)
    assert count == 1, f"the shipped file has no {key}"
    return changed
