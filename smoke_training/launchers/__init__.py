"""One typed run plan, rendered for every place that can run it (pure: plans in, documents and texts out).

`runplan` is the plan, `registry` names the renderers. Nothing here talks to a cluster or a cloud.
"""
