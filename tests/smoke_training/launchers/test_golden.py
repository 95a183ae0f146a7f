"""Output of the renderers, in files for review.

`python -m tests.smoke_training.launchers.test_golden` writes them anew after a change that is meant.
"""

from pathlib import Path

import pytest

from smoke_training.launchers import kubeflow
from smoke_training.launchers.documents import yaml
from smoke_training.launchers.registry import LAUNCHERS, cron_text
from tests.smoke_training.launchers import plans

GOLDEN = Path(__file__).with_name("golden")
_PLANS = {"sagemaker": plans.managed, "vertex": plans.vertex, "sbatch": plans.slurm}


def rendered() -> dict[str, str]:
    found = {
        f"{name}.{launcher.suffix}": launcher.render(_PLANS.get(name, plans.training)())
        for name, launcher in LAUNCHERS.items()
    }
    runtime = yaml([kubeflow.runtime(plans.training())])
    job = LAUNCHERS["job"]
    return {
        **found,
        "cronjob.yaml": cron_text(plans.cpu(), "0 5 * * 1"),
        "runtime.yaml": runtime,
        "sagemaker.spot.json": LAUNCHERS["sagemaker"].render(plans.spot()),
        "job.tcpxo.yaml": job.render(plans.tcpxo()),
        "job.gib.yaml": job.render(plans.gib()),
    }


@pytest.mark.parametrize("name", sorted(rendered()))
def test_a_rendering_is_what_was_reviewed(name: str) -> None:
    assert (GOLDEN / name).read_text() == rendered()[name]


def test_no_file_is_left_of_a_renderer_that_is_gone() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(rendered())


if __name__ == "__main__":
    for name, text in rendered().items():
        (GOLDEN / name).write_text(text)
