"""What each cloud offers to layouts: one module per cloud, each an implementation of `stacks.parts`."""
