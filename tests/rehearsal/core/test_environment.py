"""Settings that a provider takes from the engine's environment where the program gives none."""

from types import SimpleNamespace
from typing import Any

from pulumi.runtime.proto import provider_pb2

from rehearsal.core.model import CheckFailure, Properties
from rehearsal.core.provider import Provider
from rehearsal.core.wire import to_struct


def settings(package: str, environment: dict[str, str], **given: Any) -> Properties:
    """The settings that the cloud behind a provider validates."""
    checked: list[Properties] = []

    def check_config(config: Properties) -> list[CheckFailure]:
        checked.append(config)
        return []

    cloud: Any = SimpleNamespace(package=package, check_config=check_config)
    context: Any = None  # used only for refusals
    Provider(cloud, environment, "log").CheckConfig(provider_pb2.CheckRequest(news=to_struct(given)), context)
    return checked[0]


def test_the_environment_of_the_kubernetes_provider() -> None:
    environment = {
        "KUBECONFIG": "/k", "PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true",
        "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE": "true", "PULUMI_K8S_ENABLE_SECRET_MUTABLE": "",
    }  # fmt: skip
    assert settings("kubernetes", environment) == {
        "kubeconfig": "/k", "upsertExistingObjects": "true", "enableConfigMapMutable": "true",
    }  # fmt: skip


def test_settings_of_the_program_take_precedence() -> None:
    environment = {"PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true", "AWS_REGION": "eu-west-1"}
    assert settings("kubernetes", environment, upsertExistingObjects=False) == {
        "upsertExistingObjects": False
    }
    assert settings("aws", environment) == {"region": "eu-west-1"}
