"""CustomResourceDefinitions of charts, installed and upgraded before the charts (docs/adr/0048)."""
