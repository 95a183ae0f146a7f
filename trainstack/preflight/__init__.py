"""Whether a stack can be deployed into its account: asked of the account itself, changing nothing."""
