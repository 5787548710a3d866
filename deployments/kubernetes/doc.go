// Package kubernetes holds the manifests, and the tests of what they render to.
package kubernetes
