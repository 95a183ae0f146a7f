"""One ComponentResource per capability of a training stack."""
