// Package sdksuite runs the live tests of the Azure SDK for Go against a
// sandbox: those of its packages azservicebus and azservicebus/admin, as they
// come with the module. Only the helper that gets credentials of a real
// subscription is laid over by one that needs none.
//
// The result is compared with a list of known differences (known.txt). A
// failure that is not in it counts, and so does an entry that is not true any
// more. It is also compared test by test with a recording (recording.txt): one that
// does not run any more, or is skipped, counts as well. No test is run twice.
package sdksuite
