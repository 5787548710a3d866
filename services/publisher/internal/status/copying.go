package status

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

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
	// PerSecond is how many this process has copied in a second.
	PerSecond float64 `json:"per_second"`
	// SecondsLeft is an estimate by the speed of this process; absent when unknown.
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
	// Index is the index that the copy goes along; absent while it is not known, and
	// where none serves it.
	Index string `json:"index,omitempty"`
}

// tellEvery is how often the log says how far a copy has come.
const tellEvery = 30 * time.Second

// CopyRun is a copy that this process makes.
type CopyRun struct {
	Source   *backfill.Source
	Progress *backfill.Progress
	began    time.Time
	first    int64 // documents that were copied before
}

// Copying shows a copy while it is made, and tells the log of it.
func (b *Tracker) Copying(ctx context.Context, c *CopyRun, log zerolog.Logger, run func() error) error {
	c.began, c.first = time.Now(), c.Progress.Copy().Copied
	b.update(func() { b.copied = c })
	defer b.update(func() { b.copied = nil })
	telling, done := context.WithCancel(ctx)
	var teller sync.WaitGroup
	teller.Go(func() { c.tell(telling, log) })
	defer teller.Wait()
	defer done()
	return run()
}

// tell writes into the log how far the copy has come, now and then.
func (c *CopyRun) tell(ctx context.Context, log zerolog.Logger) {
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := c.status()
		line := log.Info().Int64("copied", now.Copied).Int64("total", now.Total).Float64("per_second", now.PerSecond).Str("index", now.Index)
		if now.SecondsLeft != nil {
			line = line.Float64("seconds_left", *now.SecondsLeft)
		}
		line.Msg("copying")
	}
}

func (c *CopyRun) status() *CopyStatus {
	if c == nil {
		return nil
	}
	kept := c.Progress.Copy()
	status := &CopyStatus{Cause: kept.Cause, BeganAt: kept.BeganAt, Copied: kept.Copied, Total: kept.Total}
	if index := c.Source.Index(); index != nil {
		status.Index = index.Name
	}
	done, took := float64(kept.Copied-c.first), time.Since(c.began).Seconds()
	if took > 0 {
		status.PerSecond = done / took
	}
	if status.PerSecond > 0 && kept.Total > 0 {
		left := float64(max(kept.Total-kept.Copied, 0)) / status.PerSecond
		status.SecondsLeft = &left
	}
	return status
}
