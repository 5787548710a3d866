// Package witness sees all that can be seen of the relay from outside, while it
// runs and at the end: what the topic accepts, every write to the read model,
// every state of the checkpoint; and, at rest, the source and the read model.
// Its verdict is the validators' findings over these.
package witness
