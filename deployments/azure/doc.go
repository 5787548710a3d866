// Package azure holds an example of what the relay needs on Azure, and the tests
// that compare it with the manifests. Nothing here has been applied.
package azure
