// Package patience bounds calls to a server that may come to take longer than
// it did, such as a database whose majority is behind. A fixed bound that is
// below what such a server needs would be missed for ever.
package patience

import "time"

// Patience is how long calls of one kind may take. After one that took more than
// half of its time the next may take twice as long as it did, whether it was
// answered or not; answers that come sooner take that back. It is for one
// goroutine.
type Patience struct {
	// Least and Most bound what a call may take.
	Least, Most time.Duration

	learnt time.Duration
}

// Bound is how long the next call may take.
func (p *Patience) Bound() time.Duration { return max(p.Least, min(p.learnt, p.Most)) }

// Note tells how long a call took, and how it ended.
func (p *Patience) Note(took time.Duration, err error) {
	if err == nil || 2*took > p.learnt {
		p.learnt = min(2*took, p.Most)
	}
}
