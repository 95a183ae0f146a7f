// Helm charts that stacks install and whose source is part of a Go module: rendered by tests, never built.
module trainstack.local/tools/charts

go 1.26.0

require github.com/NVIDIA/k8s-device-plugin v0.19.3
