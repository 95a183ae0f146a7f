// Published schemas that are part of a Go module: reports are held against them by tests, nothing here is built.
module trainstack.local/tools/schemas

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/owenrumney/go-sarif/v3 v3.3.1
)
