from smoke_training.nccl.tuning import parse

LOG = """
node-0:97095:97191 [5] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels
node-0:97095:97191 [5] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..7}
node-0:97095:97191 [5] NCCL INFO AllReduce: 2097152 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}
node-0:97095:97191 [5] NCCL INFO AllReduce: 4194304 Bytes -> Algo NVLSTree proto SIMPLE
node-0:97095:97191 [5] NCCL INFO AllGather: 8589934592 Bytes -> Algo 1 proto 2 time 12345.000000
node-0:97095:97191 [5] NCCL INFO Broadcast: 4 Bytes -> Algo 1 proto 0 time 7.1
"""


def test_lines_of_newer_and_older_releases_are_read() -> None:
    assert parse(LOG) == {
        ("all_reduce", 1048576): "ring/ll",
        ("all_reduce", 2097152): "nvls/simple",
        ("all_reduce", 4194304): "nvls_tree/simple",
        ("all_gather", 8589934592): "ring/simple",
    }


def test_lines_without_a_collective_are_of_the_one_that_ran_last() -> None:
    lines = """h:1:2 [0] NCCL INFO 8589934592 Bytes -> Algo 1 proto 2 time 39100.500000
h:1:2 [0] NCCL INFO 8589934592 Bytes -> Algo 2 proto 2 time 39100.500000"""
    assert parse(lines, "all_reduce") == {("all_reduce", 8589934592): "collnet_direct/simple"}
    assert parse(lines) == {}
    assert parse(LOG, "all_to_all") == parse(LOG)
