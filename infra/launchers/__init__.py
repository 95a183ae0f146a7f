"""One typed run plan, rendered for every target (pure: plans in, documents and texts out).

`runplan` is the plan, `registry` names the renderers. Nothing here connects to a cluster or a cloud.
"""
