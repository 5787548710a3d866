package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mapping"
	"changerelay/services/publisher/internal/settings"
)

// Values of ON_HISTORY_LOST, and decisions in the ledger of gaps.
const (
	DecideStop     = "stop"
	DecideHeal     = "heal"
	DecideSnapshot = "snapshot"
	DecideNow      = "now"
)

// Values of START_AT that are no times.
const (
	StartNow      = "now"
	StartSnapshot = "snapshot"
)

// checkLifecycle finds what is wrong with the settings of where a stream starts
// and goes on.
func (c *Config) checkLifecycle() []*settings.Problem {
	var problems []*settings.Problem
	bad := func(variable, format string, args ...any) {
		problems = append(problems, settings.Problemf(variable, format, args...))
	}
	if _, err := c.StartTime(); err != nil {
		bad("START_AT", "is %q, neither now, snapshot nor an RFC 3339 time such as 2026-01-31T12:00:00Z that a cluster time can be", c.StartAt)
	}
	if !slices.Contains([]string{DecideStop, DecideHeal, DecideSnapshot, DecideNow}, c.OnHistoryLost) {
		bad("ON_HISTORY_LOST", "is %q, not one of stop, heal, snapshot, now", c.OnHistoryLost)
	}
	if c.SnapshotRate < 0 {
		bad("SNAPSHOT_RATE", "is %d, below 0", c.SnapshotRate)
	}
	if c.HealMargin < 0 {
		bad("HEAL_MARGIN", "is %s, below 0", c.HealMargin)
	}
	for variable, copies := range map[string]bool{
		"START_AT":        c.StartAt == StartSnapshot,
		"ON_HISTORY_LOST": c.OnHistoryLost == DecideHeal || c.OnHistoryLost == DecideSnapshot,
	} {
		if !copies {
			continue
		}
		if c.Mode != ModeDocuments && c.FieldVersion == mapping.None {
			bad(variable, "copies events, which needs versions: without them a copied event cannot be told from the one that was sent before, "+
				"and read models that count would count it twice; set FIELD_VERSION, or choose another value")
		}
		if len(c.Collections()) != 1 {
			bad(variable, "copies one collection; set SOURCE_COLLECTION, or choose another value")
		}
		if c.SourceFilter != "" {
			bad(variable, "copies the whole collection, but SOURCE_FILTER leaves out some of it; choose another value")
		}
	}
	if c.OnHistoryLost == DecideHeal && c.Mode == ModeDocuments {
		bad("ON_HISTORY_LOST", "heal re-reads a history, and documents have none; use snapshot")
	}
	return problems
}

// MayCopy reports that the stream may come to copy the source by itself.
func (c *Config) MayCopy() bool {
	return c.StartAt == StartSnapshot || c.OnHistoryLost == DecideHeal || c.OnHistoryLost == DecideSnapshot
}

// StartTime is START_AT as a time; zero where it is none.
func (c *Config) StartTime() (time.Time, error) {
	if c.StartAt == StartNow || c.StartAt == StartSnapshot {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, c.StartAt)
	if err == nil {
		_, err = ClusterSeconds(at)
	}
	return at, err
}

// ClusterSeconds is a time as a cluster time has it: it can tell those from 1970
// to 2106.
func ClusterSeconds(at time.Time) (uint32, error) {
	seconds := at.Unix()
	if seconds <= 0 || seconds > math.MaxUint32 {
		return 0, fmt.Errorf("%s is not between 1970 and 2106", at.Format(time.RFC3339))
	}
	return uint32(seconds), nil
}

// mostListed bounds the keys that are listed for a copy where no index serves it, in bytes.
const mostListed = 16 << 20

// Plan is how a copy that leaves out what was written before since is made.
// Events go by aggregate and version, so that each aggregate's are copied in
// their order; a document is an aggregate of its own.
func (c *Config) Plan(since time.Time) backfill.Plan {
	plan := backfill.Plan{Order: []string{"_id"}, Since: since, SinceField: c.HealField, Rate: c.SnapshotRate}
	plan.Bytes, plan.ListedBytes = c.share(mostRead), c.share(mostListed)
	if c.Mode != ModeDocuments {
		plan.Order, plan.Spellings = []string{c.FieldAggregateID, c.FieldVersion, "_id"}, mapping.LaterSpellings
		plan.Earlier, plan.Margin = mapping.EarlierSpellings, c.HealMargin
	}
	return plan
}

// CopyOrder names what a copy goes along, so that nobody takes it up along
// something else.
func (c *Config) CopyOrder(since time.Time) string {
	order := strings.Join(c.Plan(since).Order, ", ")
	if !since.IsZero() {
		order += " since a time in " + c.HealField
	}
	return order
}

// BeganBehind says what a stream of documents may leave out that began where there were
// none, or with a copy, in a topic that others, or it itself before its state was lost,
// had sent to; empty where that is not so.
func (c Config) BeganBehind(began checkpoint.Beginning, behind int64) string {
	how := ""
	switch {
	case c.Mode != ModeDocuments || behind == 0:
		return ""
	case began.How == StartSnapshot:
		how = "with a copy"
	case began.Present == 0:
		how = "when the source had no documents"
	default:
		return ""
	}
	return fmt.Sprintf("the stream began at %s, %s, in a topic that has had %d messages or marks: "+
		"where they were of this source, what was deleted meanwhile is not sent, and the read models still have it",
		began.Place.Time().Time().Format(time.RFC3339), how, behind)
}
