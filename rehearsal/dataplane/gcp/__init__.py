"""Google Cloud as pods meet it: the metadata server, who a pod is, what it may do, and a few APIs."""
