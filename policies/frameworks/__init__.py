"""Control frameworks as data: rules that are evidence for controls, and whether that is verified."""
