"""Sources of resources: each module converts the output of a tool into the records that rules see."""
