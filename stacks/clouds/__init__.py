"""What each cloud offers to layouts: a folder per cloud, which implements the protocols of `stacks.parts`."""
