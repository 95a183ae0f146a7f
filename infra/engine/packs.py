"""Policy packs for the engine, and their findings."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulumi.automation.events import PolicyEvent

from infra.errors import Problem, UserError

PACK_OPTION, CONFIG_OPTION = "--policy-pack", "--policy-pack-config"


@dataclass(frozen=True)
class Packs:
    """Paths of policy packs, and of their configurations, in the same order."""

    paths: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()

    @staticmethod
    def read(paths: Sequence[Path], configs: Sequence[Path]) -> "Packs":
        """Resolve paths, as the engine works in another folder. Raises UserError with all problems.

        Faults that the engine would report only after its start are reported here.
        """
        problems = [*_faults(paths, configs), *_pack_faults(paths), *_config_faults(configs)]
        if problems:
            raise UserError(problems)
        return Packs(
            tuple(str(path.resolve()) for path in paths), tuple(str(path.resolve()) for path in configs)
        )

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.paths)

    @property
    def options(self) -> dict[str, list[str]]:
        """Options for the Automation API."""
        return {"policy_packs": [*self.paths], "policy_pack_configs": [*self.configs]}


NO_PACKS = Packs()


@dataclass(frozen=True)
class PolicyFinding:
    """A finding of a policy on a resource, or on the stack."""

    level: str
    """`mandatory` or `advisory`, as the engine applies it."""
    policy: str
    text: str
    urn: str = ""

    @staticmethod
    def of(event: PolicyEvent) -> "PolicyFinding":
        """From an event of the engine."""
        return PolicyFinding(
            event.enforcement_level, event.policy_name, event.message.strip(), event.resource_urn or ""
        )


def _faults(paths: Sequence[Path], configs: Sequence[Path]) -> Iterator[Problem]:
    if configs and len(configs) != len(paths):
        rule = f"there are {len(configs)} of it and {len(paths)} of {PACK_OPTION}"
        fix = "Give one for each pack, in the same order, or none."
        yield Problem(CONFIG_OPTION, [str(one) for one in configs], rule, fix, code="pack-configs-mismatch")


def _pack_faults(paths: Sequence[Path]) -> Iterator[Problem]:
    for path in paths:
        if path.is_file() and os.access(path, os.X_OK):
            continue
        if not (path / "PulumiPolicy.yaml").is_file():
            rule = "is not a policy pack: it has no PulumiPolicy.yaml"
            fix = (
                "Name the folder of a pack, such as `policies`, in a client's folder `.trainstack/policies`."
            )
            yield Problem(PACK_OPTION, str(path), rule, fix, code="not-a-policy-pack")


def _config_faults(configs: Sequence[Path]) -> Iterator[Problem]:
    fix = "It is a JSON object; see docs/how-to/policy-pack.md."
    for path in configs:
        try:
            content = json.loads(path.read_text())
        except OSError as error:
            rule = f"cannot be read: {error.strerror}"
            yield Problem(CONFIG_OPTION, str(path), rule, fix, code="pack-config-not-readable")
        except ValueError as error:
            yield Problem(CONFIG_OPTION, str(path), f"is not JSON: {error}", fix, code="pack-config-not-json")
        else:
            if not isinstance(content, dict):
                rule = "is not a JSON object"
                yield Problem(CONFIG_OPTION, str(path), rule, fix, code="pack-config-not-object")
