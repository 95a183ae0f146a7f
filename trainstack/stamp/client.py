"""Files of a new client's folder, rendered from the shipped stack file that is nearest."""

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra import stackspec
from infra.engine.install import MINIMUM
from infra.errors import Problem, UserError
from infra.places import PACKAGES, PROGRAM, STATE_NAME
from infra.stackspec import LoadedSpec, layers
from trainstack.stamp.environment import VENV

ENVIRONMENT = "dev"
_SHIPPED: Mapping[tuple[str, str], str] = {
    ("small", "aws"): "small-aws",
    ("small", "gcp"): "small-gcp",
    ("small-cluster", "aws"): "small-eks-aws",
    ("small-cluster", "gcp"): "small-gke-gcp",
    ("medium", "aws"): "dev-aws",
    ("medium", "gcp"): "dev-gcp",
}
"""Names of the shipped stack files by profile and cloud."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,38}")
_PLAIN = re.compile(r"[A-Za-z][\w.+]*[@-][\w.@+-]*\w", re.ASCII)
"""Text that is a string in YAML without quotes."""


_HEAD = """\
# The environment {environment} of {choices.name}: profile {choices.profile} on {choices.cloud}.
# Replace the teams and what is marked as an example. Values that are not here come from the profile:
# `trainstack explain` lists every value with its layer and its reason.
"""


@dataclass(frozen=True)
class ClientChoices:
    """Choices for a new client; an empty one is that of the shipped file."""

    name: str
    cloud: str
    profile: str
    region: str = ""
    owner: str = ""
    budget: int = 0


@dataclass(frozen=True)
class ClientFiles:
    """Rendered files, by name in the client's folder, and the checked spec of the environment."""

    texts: Mapping[str, str]
    loaded: LoadedSpec


def render(choices: ClientChoices) -> ClientFiles:
    """Render the files. Raises UserError with every problem of the choices, or of the spec that they make."""
    if not _NAME.fullmatch(choices.name):
        rule = (
            "must be up to 39 letters, digits, - and _, with a letter first: folder, project, part of names"
        )
        near = re.sub(r"[^A-Za-z0-9]+", "-", choices.name).strip("-0123456789")[:39].strip("-")
        fix = f"Such as {near}." if near else "Such as acme."
        raise UserError([Problem("NAME", choices.name, rule, fix, code="client-name-invalid")])
    layers.below(choices.profile, choices.cloud, None)  # raises for a pair that is not supported
    stack_file = f"Pulumi.{ENVIRONMENT}.yaml"
    text = _stack_file(choices)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, stack_file).write_text(text, encoding="utf-8")
        loaded = stackspec.load_file(ENVIRONMENT, Path(folder))
    texts = {
        "Pulumi.yaml": _project(choices.name),
        stack_file: text,
        ".gitignore": f"{STATE_NAME}/\n",
        "README.md": _readme(choices.name),
    }
    return ClientFiles(texts, loaded)


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write files into a folder, made if it does not exist; all or none.

    Raises UserError, before anything is written, where one exists.
    """
    taken = [folder / name for name in texts if (folder / name).exists() or (folder / name).is_symlink()]
    if taken or (folder.exists() and not folder.is_dir()):
        rule, fix = "exists, and files are never overwritten", "Choose another NAME, or remove it."
        problems = [
            Problem("NAME", str(one), rule, fix, code="client-file-exists") for one in taken or [folder]
        ]
        raise UserError(problems)
    new, written = not folder.exists(), list[Path]()
    try:
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                written.append(folder / name)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink()
        if new and folder.is_dir():
            folder.rmdir()
        fix = "Make room, or choose a folder that you can write to."
        problem = Problem("NAME", str(folder), f"cannot be written: {error}", fix, code="client-not-written")
        raise UserError([problem]) from error


def _stack_file(choices: ClientChoices) -> str:
    shipped = _SHIPPED[choices.profile, choices.cloud]
    text = (PACKAGES / "stacks" / "config" / f"Pulumi.{shipped}.yaml").read_text(encoding="utf-8")
    body = text[text.index("config:") :]
    (region,) = re.findall(r"^  trainstack:region: (\S+)$", body, re.MULTILINE)
    if choices.region:
        body = _set(body, "trainstack:region", _quoted(choices.region))
        # Zones and registries have the region in their names.
        body = body.replace(region, choices.region) if re.fullmatch(r"[a-z0-9-]+", choices.region) else body
    if choices.owner:
        owner = _quoted(choices.owner)
        body = _set(_set(body, "owner", owner), "alert_emails", f"[{owner}]")
    if choices.budget:
        body = re.sub(
            r"(?m)^    budget:\n      monthly_usd: \d+",
            f"    budget:\n      monthly_usd: {choices.budget}",
            body,
        )
    return _HEAD.format(environment=ENVIRONMENT, choices=choices) + body


def _quoted(text: str) -> str:
    """A string of YAML."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _set(text: str, key: str, value: str) -> str:
    """Set the first line of a key; its comment stays."""
    form = rf"(?m)^(\s+{re.escape(key)}: )(\[.*?\]|[^\s#]+)"
    changed, count = re.subn(form, lambda found: found[1] + value, text, count=1)
    assert count == 1, f"the shipped file has no {key}"
    return changed


def _project(name: str) -> str:
    return f"""\
name: {name}
description: Training stacks of {name}
# Written by every `trainstack` command; native `pulumi` commands work once one has run here.
main: {PROGRAM}
requiredPulumiVersion: ">={".".join(map(str, MINIMUM))}"
runtime:
  name: python
  options:
    virtualenv: {VENV}
"""


def _readme(name: str) -> str:
    return f"""\
# {name}

Training stacks of {name}, run with [Pulumi](https://www.pulumi.com) by the command `trainstack`. This folder
holds data only: `Pulumi.<stack>.yaml` describes an environment. `.trainstack/` links to the installed program
and is never committed.

```console
trainstack explain                  # every value of the stack, its layer and its reason
trainstack up --rehearse --yes      # on this machine: no account, no cost (needs the extra `rehearse`)
eval "$(trainstack rehearse env)"   # plain pulumi commands on the rehearsed stack, in this shell
pulumi preview                      # with the rules for training stacks: --policy-pack .trainstack/policies
```

In a real account: replace the examples in `Pulumi.{ENVIRONMENT}.yaml`, log in to the cloud and to a Pulumi
backend (`pulumi login`), make the stack (`pulumi stack init {ENVIRONMENT}`), then `trainstack preflight` and
`trainstack up`.
"""
