module changerelay/pkg/contract

go 1.26.0

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/google/jsonschema-go v0.4.3
)
