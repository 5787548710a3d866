package backfill

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Plan says what to copy, and how.
type Plan struct {
	// Order is the fields that the copy goes along. The last one must be _id.
	Order []string
	// Since leaves out documents whose SinceField is an earlier date, or an
	// ObjectId made earlier; zero copies everything. A document whose field is
	// neither is copied.
	Since      time.Time
	SinceField string
	// Filter is what documents must match besides; nil for all. Narrow says that it
	// leaves few values of the order's first field, so that an index is read at those
	// alone; otherwise as much of it is looked through in one snapshot as Searched says.
	Filter bson.D
	Narrow bool
	// Spellings are the values of other types that stand for the same aggregate as a
	// value of the order's first field, and sort behind it. Its second field is then
	// the version: see SpelledError. Nil is for an order in which that does not matter.
	Spellings func(id bson.RawValue) []bson.RawValue
	// Earlier are those that sort before it, so that the copy has passed them; integers
	// have 64 bits. An event under one of them that is not known by SinceField to be
	// written a Margin before the copy began may have come behind it. Nil is for a copy
	// of which the stream has handed on all that it shows.
	Earlier func(id bson.RawValue) []bson.RawValue
	Margin  time.Duration
	// EndShort ends the order at the first chunk that is not full: what came to its end
	// since is not looked for.
	EndShort bool
	// Once has Read return why a chunk cannot be read, and not try it again: whoever reads
	// does. What was learned of how much can be read in time is kept.
	Once bool
	// Rate bounds the documents a second; 0 is as fast as it goes.
	Rate int
	// Chunk is how many documents are read in one snapshot; 0 means as many as 4 MiB
	// hold, by the size of those before.
	Chunk int
	// Bytes is what a chunk may hold, but for its last document; 0 means 4 MiB.
	Bytes int
	// Listed is how many keys are listed in one snapshot where no index serves the
	// copy; 0 means 100,000. ListedBytes is what these may take, but for the last one; 0
	// means 16 MiB.
	Listed, ListedBytes int
	// Searched is how many documents are looked through in one snapshot for those
	// without a place in the order, or that match the filter, or Since; 0 means 50,000.
	Searched int
}
