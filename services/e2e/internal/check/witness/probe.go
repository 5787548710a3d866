package witness

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	// probePause is how long a probe waits after an answer.
	probePause = 100 * time.Millisecond
	// answerTime is how long servers that are not in trouble take at most to answer.
	answerTime = 500 * time.Millisecond
)

// Probe asks the servers again and again until ctx ends, and calls late for each time in
// which they left a request without an answer for longer than they should: another fault
// did it, or they lacked a processor. What somebody else has asked for, or sent, waited
// as well then.
func (w *Witness) Probe(ctx context.Context, late func(from, to time.Time)) {
	for ctx.Err() == nil {
		from := time.Now()
		err := w.Client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err()
		if ctx.Err() != nil {
			return
		}
		if to := time.Now(); err != nil || to.Sub(from) > answerTime {
			late(from, to)
		}
		pause := time.NewTimer(probePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}
