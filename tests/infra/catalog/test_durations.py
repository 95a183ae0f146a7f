"""Durations of every cloud."""

import datetime

from infra.catalog.durations import durations


def test_both_clouds_have_rows() -> None:
    assert {token.partition(":")[0] for token in durations()} == {"aws", "gcp"}


def test_the_slow_steps_of_a_stack_on_google_cloud_are_known() -> None:
    minutes = {
        "gcp:container/cluster:Cluster": (5, 10),
        "gcp:container/nodePool:NodePool": (1, 3),
        "gcp:sql/databaseInstance:DatabaseInstance": (4, 8),
    }
    for token, (least, most) in minutes.items():
        (row,) = durations()[token]
        assert least * 60 <= row.seconds_expected <= most * 60, token
        assert row.seconds_min < row.seconds_expected < row.seconds_max
        assert row.source and row.date <= datetime.date.today()
