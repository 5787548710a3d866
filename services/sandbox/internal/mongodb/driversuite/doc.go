// Package driversuite runs the integration and specification tests of the
// official Go driver against the sandbox, and compares them test by test with
// what the same tests do against a real server.
//
// The tests are those of the driver's published module, unmodified. What the
// real server does is a recording in testdata; its first lines say how it was
// made. Each unit of work is one process of a test binary with a sandbox of
// its own, so that units can run side by side and none sees another's traces.
//
// The driver's tests have margins of their own, some of a few milliseconds, and
// miss them on a busy machine. A test that differs from the recording is
// therefore run again, up to three times, with nothing beside it and with priority
// over what else the machine does; its last result counts.
package driversuite
