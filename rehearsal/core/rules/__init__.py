"""What a cloud would refuse: one small rule per fact, each with its source."""
