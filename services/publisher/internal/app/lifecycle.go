package app

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/mapping"
	"changerelay/services/publisher/internal/settings"
)

// Values of ON_HISTORY_LOST, and decisions in the ledger of gaps.
const (
	decideStop     = "stop"
	decideHeal     = "heal"
	decideSnapshot = "snapshot"
	decideNow      = "now"
)

// Values of START_AT that are no times.
const (
	startNow      = "now"
	startSnapshot = "snapshot"
)

// checkLifecycle finds what is wrong with the settings of where a stream starts
// and goes on.
func (c *Config) checkLifecycle() []*settings.Problem {
	var problems []*settings.Problem
	bad := func(variable, format string, args ...any) {
		problems = append(problems, settings.Problemf(variable, format, args...))
	}
	if _, err := c.startTime(); err != nil {
		bad("START_AT", "is %q, neither now, snapshot nor an RFC 3339 time such as 2026-01-31T12:00:00Z that a cluster time can be", c.StartAt)
	}
	if !slices.Contains([]string{decideStop, decideHeal, decideSnapshot, decideNow}, c.OnHistoryLost) {
		bad("ON_HISTORY_LOST", "is %q, not one of stop, heal, snapshot, now", c.OnHistoryLost)
	}
	if c.SnapshotRate < 0 {
		bad("SNAPSHOT_RATE", "is %d, below 0", c.SnapshotRate)
	}
	if c.HealMargin < 0 {
		bad("HEAL_MARGIN", "is %s, below 0", c.HealMargin)
	}
	for variable, copies := range map[string]bool{
		"START_AT":        c.StartAt == startSnapshot,
		"ON_HISTORY_LOST": c.OnHistoryLost == decideHeal || c.OnHistoryLost == decideSnapshot,
	} {
		if !copies {
			continue
		}
		if c.Mode != modeDocuments && c.FieldVersion == mapping.None {
			bad(variable, "copies events, which needs versions: without them a copied event cannot be told from the one that was sent before, "+
				"and read models that count would count it twice; set FIELD_VERSION, or choose another value")
		}
		if len(c.collections()) != 1 {
			bad(variable, "copies one collection; set SOURCE_COLLECTION, or choose another value")
		}
		if c.SourceFilter != "" {
			bad(variable, "copies the whole collection, but SOURCE_FILTER leaves out some of it; choose another value")
		}
	}
	if c.OnHistoryLost == decideHeal && c.Mode == modeDocuments {
		bad("ON_HISTORY_LOST", "heal re-reads a history, and documents have none; use snapshot")
	}
	return problems
}

// mayCopy reports that the stream may come to copy the source by itself.
func (c *Config) mayCopy() bool {
	return c.StartAt == startSnapshot || c.OnHistoryLost == decideHeal || c.OnHistoryLost == decideSnapshot
}

// startTime is START_AT as a time; zero where it is none.
func (c *Config) startTime() (time.Time, error) {
	if c.StartAt == startNow || c.StartAt == startSnapshot {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, c.StartAt)
	if err == nil {
		_, err = clusterSeconds(at)
	}
	return at, err
}

// clusterSeconds is a time as a cluster time has it: it can tell those from 1970
// to 2106.
func clusterSeconds(at time.Time) (uint32, error) {
	seconds := at.Unix()
	if seconds <= 0 || seconds > math.MaxUint32 {
		return 0, fmt.Errorf("%s is not between 1970 and 2106", at.Format(time.RFC3339))
	}
	return uint32(seconds), nil
}

// plan is how a copy that leaves out what was written before since is made.
// Events go by aggregate and version, so that each aggregate's are copied in
// their order; a document is an aggregate of its own.
func (c *Config) plan(since time.Time) backfill.Plan {
	order := []string{"_id"}
	if c.Mode != modeDocuments {
		order = []string{c.FieldAggregateID, c.FieldVersion, "_id"}
	}
	return backfill.Plan{Order: order, Since: since, SinceField: c.HealField, Rate: c.SnapshotRate}
}

// copyOrder names what a copy goes along, so that nobody takes it up along
// something else.
func (c *Config) copyOrder(since time.Time) string {
	order := strings.Join(c.plan(since).Order, ", ")
	if !since.IsZero() {
		order += " since a time in " + c.HealField
	}
	return order
}
