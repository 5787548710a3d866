// Package dependencies holds no code, only the proof of who may import whom.
package dependencies
