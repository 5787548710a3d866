// Package dependencies holds no code, only the proof of who may import whom, that
// twins are equal, and that tests are named by their subject.
package dependencies
