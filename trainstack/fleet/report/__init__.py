"""Reports of a fleet command: one document, as JSON, JUnit XML and a page."""
