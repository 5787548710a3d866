// Package observability holds dashboards and alerts, and the tests that compare
// them with the metrics that the services have. The directory is a kustomize
// component as well.
package observability
