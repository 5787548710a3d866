package app

import (
	"time"

	"changerelay/services/publisher/internal/backfill"
)

// CopyStatus is a copy under way, as /status shows it.
type CopyStatus struct {
	Cause   string    `json:"cause"`
	BeganAt time.Time `json:"began_at"`
	// Copied is how many documents are sent and kept as such.
	Copied int64 `json:"copied"`
	// Total is how many there were when it began, an estimate; absent when unknown.
	Total int64 `json:"total,omitempty"`
	// SecondsLeft is an estimate by the speed of this process; absent when unknown.
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
}

// copyRun is a copy that this process makes.
type copyRun struct {
	progress *backfill.Progress
	began    time.Time
	first    int64 // documents that were copied before
}

// copying shows a copy while it is made.
func (b *board) copying(progress *backfill.Progress, run func() error) error {
	b.update(func() { b.copied = &copyRun{progress: progress, began: time.Now(), first: progress.Copy().Copied} })
	defer b.update(func() { b.copied = nil })
	return run()
}

func (c *copyRun) status() *CopyStatus {
	if c == nil {
		return nil
	}
	kept := c.progress.Copy()
	status := &CopyStatus{Cause: kept.Cause, BeganAt: kept.BeganAt, Copied: kept.Copied, Total: kept.Total}
	if done := kept.Copied - c.first; done > 0 && kept.Total > 0 {
		left := float64(max(kept.Total-kept.Copied, 0)) * time.Since(c.began).Seconds() / float64(done)
		status.SecondsLeft = &left
	}
	return status
}
