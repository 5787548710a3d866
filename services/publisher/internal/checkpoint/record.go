package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Record is what is known of a stream apart from its checkpoint. It is made
// before the first claim, and the publisher never removes it. So it tells a checkpoint
// that is gone, or went back, from one that never existed.
type Record struct {
	// Stream is the checkpoint's name: of the whole stream, or of one partition.
	Stream string
	// Whole is the name of the whole stream, and Lease that of its lease.
	Whole, Lease string
	// Partitions is how many the whole is split into.
	Partitions int
	// Retired says that the stream has another number of partitions now.
	Retired bool
	// Term is the highest that was ever given out.
	Term int64
	// Confirmed is the highest that the checkpoint was seen to have; 0 while it
	// may not have been made.
	Confirmed int64
	Began     Beginning
	Source    Origin
	// Undecided says that a command made the record, and has not decided yet: whose
	// the checkpoint is that may be there is not known.
	Undecided bool
	// Settings are those that make the stream this one.
	Settings Settings
	// Alone says that the stream must be the first that sends to its topic: it is
	// new, and leaves out what the source has. If another one is behind, what that
	// sends later comes after the beginning of this, out of order.
	Alone bool
	// Marked says that the topic has a mark of the stream, for others to see, and
	// Marks how often it was to be marked: one that failed may be there.
	Marked bool
	Marks  int64
	// Behind is how many messages, or marks of others, the topic has had before the
	// mark of the stream; 0 while it has none.
	Behind int64
	// Options stands for the options of the stream, as in the checkpoint.
	Options string
	// Stopped is the time of the change to a collection that the stream stands
	// before, and Accepted the time up to which such changes are accepted.
	Stopped, Accepted ClusterTime
	// DecidedAt is when an operator last decided where the stream goes on.
	DecidedAt time.Time
	// Halt is why its leader waits for an operator; empty while it does not.
	Halt string
}

// Beginning is where and how a stream began.
type Beginning struct {
	// How is START_AT, or "adopted" where there was a checkpoint without a record.
	How   string
	Place Place
	// Present is how many documents the source had, none of which a stream that
	// begins at a time sends: an estimate, and negative where it is not known.
	Present int64
	At      time.Time
	By      string
}

// Adopted as the way in which a stream began says that it is older than its
// record.
const Adopted = "adopted"

// Skipped says what a beginning left out; empty where it left out nothing that
// is known.
func (b Beginning) Skipped() string {
	if b.Place.Copy != nil || b.How == Adopted || b.Present <= 0 {
		return ""
	}
	return fmt.Sprintf("the stream began at %s (START_AT=%s), when the source had %d documents: what was written before is not sent",
		b.Place.Time().Time().Format(time.RFC3339), b.How, b.Present)
}

// Origin is what tells a source from another. What is not known is empty.
type Origin struct {
	// Set is the replica set's name, and Cluster an id that no other has.
	Set, Cluster string
	// Collections are the ids of the collections by their names.
	Collections map[string]string
	// Whole says that these are what a database has, where they come and go, and
	// not what the settings name.
	Whole bool
	// Router says that a router of a sharded cluster has answered. It is not kept.
	Router bool
}

// OtherCluster says how the cluster differs from another; empty where it is not
// known to.
func (o Origin) OtherCluster(now Origin) string {
	switch {
	case differ(o.Cluster, now.Cluster):
		return fmt.Sprintf("the stream is of the cluster %s, this one is %s", o.Cluster, now.Cluster)
	case differ(o.Set, now.Set):
		return fmt.Sprintf("the stream is of the replica set %q, this one is %q", o.Set, now.Set)
	case now.Whole && o.Cluster == "" && o.shares(now) == 0 && len(o.others(now)) > 0:
		return fmt.Sprintf("no collection is the one that it was, of %d that have the same name: %s", len(o.others(now)), o.others(now)[0])
	}
	return ""
}

// shares counts the collections that are known to be the same.
func (o Origin) shares(now Origin) int {
	same := 0
	for name, id := range now.Collections {
		if id != "" && o.Collections[name] == id {
			same++
		}
	}
	return same
}

// OtherCollections says which of the collections that the settings name are
// others than they were; empty where none is known to be. In a sharded cluster, a
// collection that is resharded, unsharded or moved gets another id with the same
// documents. So in the same one an id proves nothing: the stream shows drops and renames.
func (o Origin) OtherCollections(now Origin) string {
	if now.Whole || now.Router && o.Cluster != "" && o.Cluster == now.Cluster {
		return ""
	}
	others := strings.Join(o.others(now), "; ")
	if now.Router && others != "" {
		others += "; if it was resharded, unsharded or moved, its documents are the same"
	}
	return others
}

func (o Origin) others(now Origin) []string {
	var others []string
	for _, name := range slices.Sorted(maps.Keys(now.Collections)) {
		if differ(o.Collections[name], now.Collections[name]) {
			others = append(others, fmt.Sprintf("the collection %q had the id %s, now it has %s", name, o.Collections[name], now.Collections[name]))
		}
	}
	return others
}

func differ(was, is string) bool { return was != "" && is != "" && was != is }

// With is the origin with what is known now in place of what was.
func (o Origin) With(now Origin) Origin {
	known := maps.Clone(o.Collections)
	if known == nil {
		known = map[string]string{}
	}
	if now.Whole && len(now.Collections) > 0 {
		clear(known) // what is not there any more says nothing
	}
	maps.Copy(known, now.Collections)
	merged := Origin{Set: o.Set, Cluster: o.Cluster, Collections: known}
	if now.Set != "" {
		merged.Set = now.Set
	}
	if now.Cluster != "" {
		merged.Cluster = now.Cluster
	}
	return merged
}
