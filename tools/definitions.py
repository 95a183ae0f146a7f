"""Write the packed definitions of `components/kubernetes/definitions` from the charts' Go modules.

    python -m tools.definitions

After a change of a chart's version: change go.mod of the module first (`_SOURCES`).
"""

import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from infra.engine.golang import ROOT, TOOLS, go

FOLDER = ROOT / "components" / "kubernetes" / "definitions"
# Folder below tools/ whose go.mod requires the module, the module, and its folder with the definitions.
_SOURCES = {
    "jobset": ("control-plane", "sigs.k8s.io/jobset", "charts/jobset/crds"),
    "kubeflow-trainer": ("trainer", "github.com/kubeflow/trainer/v2", "charts/kubeflow-trainer/crds"),
    "kube-prometheus-stack": (
        "definitions",
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd",
    ),
}
# A pod of 128 MiB unpacks it: the default of the highest preset needs 64 MiB for that alone.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 4 * 1024 * 1024}]


class _Loader(yaml.CSafeLoader):
    """The C loader, which does not know the value `=` of YAML 1.1."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)


def of_folder(folder: Path) -> list[dict[str, Any]]:
    """The definitions in a folder, by name."""
    found = (
        body
        for path in folder.glob("*.yaml")
        for body in yaml.load_all(path.read_text(encoding="utf-8"), Loader=_Loader)
        if body
    )
    return sorted(found, key=lambda body: str(body["metadata"]["name"]))


def of_chart(chart: str) -> list[dict[str, Any]]:
    """The definitions of a chart in its module, as in `sources`. Raises SetupError."""
    folder, module, path = _SOURCES[chart]
    source = json.loads(go(TOOLS / folder, "mod", "download", "-json", module))
    return of_folder(Path(source["Dir"]) / path)


def sources() -> Iterator[str]:
    """The charts."""
    yield from _SOURCES


def packed(bodies: list[dict[str, Any]]) -> bytes:
    """The content of a file: the same for the same definitions."""
    text = json.dumps(bodies, separators=(",", ":"), sort_keys=True).encode()
    return lzma.compress(text, format=lzma.FORMAT_XZ, check=lzma.CHECK_SHA256, filters=_FILTERS)


def main() -> int:
    """Write every file."""
    for chart in sources():
        content = packed(of_chart(chart))
        (FOLDER / f"{chart}.json.xz").write_bytes(content)
        sys.stdout.write(f"{chart}: {len(content)} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
