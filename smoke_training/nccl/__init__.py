"""What NCCL says of itself: the transport and the algorithms that it chose, from its log."""
