"""The folder of a run, checked and packed."""
