"""Reports on stacks for readers who run no command: a page that works offline, and its numbers."""
