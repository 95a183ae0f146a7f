"""Output of the renderers, in files for review; variants as differences.

`python -m tests.infra.launchers.test_golden` renews them after an intended change.
"""

import difflib
from pathlib import Path

import pytest

from infra.launchers import kubeflow
from infra.launchers.documents import yaml
from infra.launchers.registry import LAUNCHERS, cron_text
from tests.infra.launchers import plans

GOLDEN = Path(__file__).with_name("golden")
_PLANS = {"sagemaker": plans.managed, "vertex": plans.vertex, "sbatch": plans.slurm}


def rendered() -> dict[str, str]:
    found = {
        f"{name}.{launcher.suffix}": launcher.render(_PLANS.get(name, plans.training)())
        for name, launcher in LAUNCHERS.items()
    }
    variants = {
        "sagemaker.spot": ("sagemaker.json", LAUNCHERS["sagemaker"].render(plans.spot())),
        "job.tcpxo": ("job.yaml", LAUNCHERS["job"].render(plans.tcpxo())),
        "job.gib": ("job.yaml", LAUNCHERS["job"].render(plans.gib())),
    }
    return {
        **found,
        "cronjob.yaml": cron_text(plans.cpu(), "0 5 * * 1"),
        "runtime.yaml": yaml([kubeflow.runtime(plans.training())]),
        **{f"{name}.diff": _difference(found[base], text) for name, (base, text) in variants.items()},
    }


def _difference(base: str, text: str) -> str:
    lines = difflib.unified_diff(base.splitlines(), text.splitlines(), n=0, lineterm="")
    return "".join(f"{line}\n" for line in list(lines)[2:])


@pytest.mark.parametrize("name", sorted(rendered()))
def test_a_rendering_is_what_was_reviewed(name: str) -> None:
    assert (GOLDEN / name).read_text() == rendered()[name]


def test_no_file_is_left_of_a_renderer_that_is_gone() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(rendered())


if __name__ == "__main__":
    for name, text in rendered().items():
        (GOLDEN / name).write_text(text)
