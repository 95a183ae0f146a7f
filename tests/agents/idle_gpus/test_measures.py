"""Activity of the GPUs of pods, from responses of Prometheus."""

import pytest

from agents.idle_gpus.measures import Activity, activities
from tests.agents.idle_gpus.recorded import answer, series

END = 1_800_000_000.0
BEGIN = END - 2700
MINUTES = 46
NOTEBOOK = ("team-vision", "notebook")


def test_all_gpus_of_a_pod_count_and_the_busiest_minute_of_any() -> None:
    found = activities(
        [
            answer(
                series("notebook", [0.0] * MINUTES, end=END),
                series("notebook", [0.0] * 45 + [0.7], end=END, gpu=1),
                series("other", [0.3] * MINUTES, end=END, namespace="team-audio"),
            )
        ],
        BEGIN,
        END,
    )
    assert found[NOTEBOOK] == Activity(gpus=2, coverage=1.0, busiest=0.7)
    assert found["team-audio", "other"].busiest == 0.3


def test_a_gpu_with_two_metrics_is_one_gpu_and_its_larger_figure_counts() -> None:
    engine = answer(series("notebook", [0.0] * MINUTES, end=END))
    utilization = answer(series("notebook", [0.4] * MINUTES, end=END, __name__="DCGM_FI_DEV_GPU_UTIL"))
    assert activities([engine, utilization], BEGIN, END)[NOTEBOOK] == Activity(1, 1.0, 0.4)


def test_a_gap_is_seen_of_the_gpu_that_has_it() -> None:
    found = activities(
        [
            answer(
                series("notebook", [0.0] * MINUTES, end=END), series("notebook", [0.0] * 23, end=END, gpu=1)
            )
        ],
        BEGIN,
        END,
    )
    assert found[NOTEBOOK].coverage == pytest.approx(0.5)


def test_partitions_of_one_gpu_are_distinct() -> None:
    parts = [series("notebook", [0.0] * MINUTES, end=END, GPU_I_ID=part) for part in ("1", "2")]
    assert activities([answer(*parts)], BEGIN, END)[NOTEBOOK].gpus == 2


def test_a_scrape_that_does_not_honour_labels_names_the_pod_elsewhere() -> None:
    exported = series(
        "dcgm-exporter-x", [0.9] * MINUTES, end=END, namespace="gpu",
        exported_namespace="team-vision", exported_pod="notebook",
    )  # fmt: skip
    assert activities([answer(exported)], BEGIN, END) == {NOTEBOOK: Activity(1, 1.0, 0.9)}


@pytest.mark.parametrize("figure", [float("nan"), 9223372036854775794.0, 9223372036854775794.0 / 100, -1.0])
def test_what_is_no_figure_is_none(figure: float) -> None:
    assert activities([answer(series("notebook", [figure] * MINUTES, end=END))], BEGIN, END) == {}


def test_a_gpu_without_a_pod_is_ignored() -> None:
    free = series("x", [0.0], end=END)
    del free["metric"]["pod"], free["metric"]["namespace"]
    assert activities([answer(free)], BEGIN, END) == {}


def test_no_answer_is_no_activity() -> None:
    assert activities([answer(), {}, {"data": {}}], BEGIN, END) == {}
