"""RES: in which regions a stack is, and where its data goes."""
