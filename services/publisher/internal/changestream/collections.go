package changestream

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
)

// CollectionChange is something that happened to a collection as a whole, or to
// the stream: drop, rename, dropDatabase, invalidate, or what a later server
// may call it.
type CollectionChange struct {
	Operation string
	// Collection is what it happened to; empty where it was the database, or the
	// stream. To is the new name of one that was renamed.
	Collection, To string
	Position       contract.Position
	At             checkpoint.ClusterTime
}

// String says what happened, for people.
func (c CollectionChange) String() string {
	switch {
	case c.To != "":
		return fmt.Sprintf("%s of the collection %q to %q", c.Operation, c.Collection, c.To)
	case c.Collection != "":
		return fmt.Sprintf("%s of the collection %q", c.Operation, c.Collection)
	default:
		return c.Operation
	}
}

// Replaces reports whether one of the collections, or any where there are none,
// has other documents now, none of which the stream shows.
func (c CollectionChange) Replaces(collections []string) bool {
	return c.To != "" && (len(collections) == 0 || slices.Contains(collections, c.To))
}

// Concerns reports whether a collection may be another one now.
func (c CollectionChange) Concerns(collection string) bool {
	return c.Collection == "" || c.Collection == collection || c.To == collection
}

// OnCollectionChange says who is told of changes to collections, each before it
// is handed out: while that fails the stream stands before it. It is to be
// called before the first Read.
func (s *Stream) OnCollectionChange(tell func(ctx context.Context, c CollectionChange) error) {
	s.tell = tell
}

// told tells of a change that is to a collection as a whole. The invalidation
// that follows such a change is a part of it.
func (s *Stream) told(ctx context.Context, change relay.Change) error {
	raw := bson.Raw(change.Raw)
	if s.tell == nil || ofDocument(raw) {
		return nil
	}
	c := CollectionChange{Position: change.Position}
	c.Operation, _ = raw.Lookup("operationType").StringValueOK()
	c.Collection, _ = raw.Lookup("ns", "coll").StringValueOK()
	c.To, _ = raw.Lookup("to", "coll").StringValueOK()
	c.At.Seconds, c.At.Increment, _ = raw.Lookup("clusterTime").TimestampOK()
	if seconds, increment, err := change.Position.ClusterTime(); err == nil && c.At.IsZero() {
		c.At = checkpoint.ClusterTime{Seconds: seconds, Increment: increment}
	}
	if c.Operation == "invalidate" && c.At == s.toldAt {
		return nil
	}
	if err := s.tell(ctx, c); err != nil {
		return err
	}
	s.toldAt = c.At
	return nil
}

// ofDocument reports whether a change is to a single document.
func ofDocument(raw bson.Raw) bool {
	operation := raw.Lookup("operationType").Value // length, text, zero
	if len(operation) < 5 {
		return false
	}
	switch string(operation[4 : len(operation)-1]) { // does not allocate
	case "insert", "update", "replace", "delete":
		return true
	default:
		return false
	}
}
