// Package container holds no code, only the tests of the images: they run as
// containers between servers in containers, and are killed, frozen and cut off.
// Each test ends with the verdict of the same witness that the scenarios have.
//
// The tests have the build tag docker, for they need a Docker engine and the
// project's images: run them with make test-docker.
package container
