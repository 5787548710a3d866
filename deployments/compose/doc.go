// Package compose holds what docker-compose.yml mounts, and the tests of both.
package compose
