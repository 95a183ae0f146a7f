"""Read NCCL's log: the transport and the algorithms that it chose."""
