// Package docker runs the relay's images, and the servers it stands between, as
// containers, and injects faults: containers are killed, frozen, or cut off from the others.
//
// There are three networks, so that who looks on is never cut off:
//
//	test ── a-admin ── publishers, projectors ── inner ── servers ── a-watch ── test
//
// A port is published by the network whose name sorts first, which is why those
// two are called so; to cut a container off is to take it from the inner one.
package docker
