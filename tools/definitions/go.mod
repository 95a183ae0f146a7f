// Source of the definitions of kube-prometheus-stack, whose chart is not part of a Go module: read, never built.
module trainstack.local/tools/definitions

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.93.1
