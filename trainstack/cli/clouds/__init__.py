"""Services of AWS and Google Cloud for commands, and the choice between them."""
