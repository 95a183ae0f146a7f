"""Functions of the `kubernetes` package, which `pulumi_kubernetes.yaml` calls to read manifests."""

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rehearsal.core.model import Properties, RefusalError
from rehearsal.kubernetes.kinds import builtin_namespaced


def call(token: str, args: Properties) -> Properties:
    """Result of a function. Raises RefusalError when it is not emulated."""
    if token.endswith(":yaml:decode"):
        return {"result": list(_decoded(str(args.get("text") or ""), args.get("defaultNamespace")))}
    raise RefusalError(
        "NotEmulated",
        f"function {token} is not emulated.",
        "Use resources instead: helm.sh/v3:Release for charts, typed objects for manifests.",
    )


def _decoded(text: str, namespace: Any) -> Iterator[dict[str, Any]]:
    """Objects of a manifest, those in lists included. Raises RefusalError for invalid YAML."""
    try:
        documents = [one for one in YAML(typ="safe").load_all(StringIO(text)) if one]
    except YAMLError as error:
        raise RefusalError("InvalidYaml", f"the manifest cannot be read: {error}") from error
    for document in documents:
        if not isinstance(document, Mapping) or not document.get("kind"):
            raise RefusalError(
                "InvalidManifest", f"an object needs apiVersion and kind: {str(document)[:80]}"
            )
        items = document.get("items")
        inside = items if str(document["kind"]).endswith("List") and isinstance(items, list) else [document]
        for item in inside:
            yield _placed(dict(item), namespace)


def _placed(item: dict[str, Any], namespace: Any) -> dict[str, Any]:
    metadata = item.get("metadata") or {}
    if not namespace or metadata.get("namespace") or not builtin_namespaced(str(item.get("kind"))):
        return item
    return {**item, "metadata": {**metadata, "namespace": namespace}}
