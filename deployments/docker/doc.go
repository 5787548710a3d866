// Package docker holds the container files, and the tests that compare them.
package docker
