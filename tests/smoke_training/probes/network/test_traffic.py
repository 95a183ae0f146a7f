"""Bytes of adapters between two readings."""

from smoke_training.probes.network.traffic import since


def test_a_counter_that_was_reset_in_between_is_unknown() -> None:
    before = {"port_tx_bytes": {"mlx5_0/1": 5 * 10**9, "mlx5_1/1": 5 * 10**9}, "tcp": {"sent": 7}}
    after = {"port_tx_bytes": {"mlx5_0/1": 9 * 10**9, "mlx5_1/1": 1000, "mlx5_2/1": 3}, "tcp": {"sent": 7}}
    found = since(before, after)
    assert found == {"port_tx_bytes": {"mlx5_0/1": 4 * 10**9, "mlx5_2/1": 3}, "tcp": {"sent": 0}}
