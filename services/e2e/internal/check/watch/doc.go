// Package watch follows what the relay writes to MongoDB, write by write, over
// change streams: every write to a read model, every state of a checkpoint. A
// read shows only how things ended; a history shows whether they ever went back.
package watch
