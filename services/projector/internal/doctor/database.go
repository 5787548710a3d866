package doctor

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Database is what is known of the read database. Where something was not
// permitted to be asked it is empty, and judged as well.
type Database struct {
	Name string
	// Standalone says that the server is neither of a replica set nor a router.
	Standalone bool
	// Router says that it is a router of a sharded cluster.
	Router bool
	// ShardKeys are those that are not _id, by collection.
	ShardKeys map[string]string
	// Members are those of the replica set with data that answer, and Majority how
	// many a write waits for; 0 is unknown.
	Members, Majority int
	// Lag is how long a majority takes until it has a write.
	Lag time.Duration
	// Lacking are the documented actions that the user has not, by collection.
	Lacking []Lack
	// WithoutIndex are the collections whose tidying index is not there, and
	// OtherIndex what they keep with another time than is configured.
	WithoutIndex []string
	OtherIndex   map[string]time.Duration
	// Elsewhere says whose the read collections are, or what feeds the group, where
	// that is not as in the environment.
	Elsewhere string
	// Reshaped says which projections have another key than their documents.
	Reshaped string
	// PositionsLost says which events documents show that applied_positions lacks.
	PositionsLost string
	// Unnoted are single documents that show an event which applied_positions lacks.
	Unnoted []string
	// Emptied says which read collections were emptied or dropped, and what to do.
	Emptied []string
	// Incomplete counts aggregates, by projection, that lack what was resent of them.
	Incomplete int64
	// Blind are the views of which readers see nothing: those that are not there, and
	// those whose collection is not, with its name.
	Blind map[string]string
	// Halted and Parked are how much of each waits for an operator.
	Halted, Parked int64
	// Skipped counts the events that projections lack because they were skipped.
	Skipped int64
	// Apart and Early count those of the halted aggregates that no mended projection
	// helps: for an event of another source, and for one from before the aggregate began.
	Apart, Early int
}

// slowMajority is how long a majority takes at least that is told of.
const slowMajority = time.Second

// Lack is an action that a user has not on a collection.
type Lack struct{ Action, Collection string }

// JudgeDatabase judges the read database.
func JudgeDatabase(d *Database, settings Settings) []Finding {
	f := &findings{subject: fmt.Sprintf("read database %q", d.Name)}
	f.add(d.Standalone, Fault, "make it a replica set, of one member at least",
		"is neither a replica set nor sharded: parking, and projections with a key, need transactions")
	for _, collection := range slices.Sorted(maps.Keys(d.ShardKeys)) {
		f.add(true, Fault, "move its documents to a collection that is sharded by _id, or is not sharded, or drop it and build it anew",
			"has the collection %q sharded by %s: the projector writes by _id alone, so writes are refused, or a document is there twice", collection, d.ShardKeys[collection])
	}
	f.add(d.Majority > 0 && d.Members < d.Majority, Fault, "bring its members back",
		"has %d members with data that answer, and a write waits for %d: no write is confirmed", d.Members, d.Majority)
	f.add(d.Lag >= slowMajority, Warning, "look at rs.printSecondaryReplicationInfo() and rs.status(): bring a member back that is down, and mend or replace the one that lags",
		"has a majority that takes %s or longer until it has a write: each write of a projector takes as long, and beyond READMODEL_TIMEOUT none is confirmed",
		d.Lag.Round(time.Second/10))
	f.add(len(d.Lacking) > 0, Fault, "grant what docs/security.md lists", "does not let the user %v", d.Lacking)
	f.add(len(d.WithoutIndex) > 0, Warning, "run projector setup with a role that may create indexes",
		"lacks indexes on %q, so it is not tidied", d.WithoutIndex)
	for _, collection := range slices.Sorted(maps.Keys(d.OtherIndex)) {
		f.add(true, Warning, "drop the index, and run projector setup",
			"tidies %q after %s, which is not what TOMBSTONE_TTL, %s, asks for", collection, d.OtherIndex[collection], settings.TombstoneTTL)
	}
	f.add(d.Elsewhere != "", Fault, "use the environment of those projectors, or stop them and run projector move", "is not this environment's: %s", d.Elsewhere)
	f.add(d.Reshaped != "", Fault, "declare it as another version, or give it its key back; until then no projector starts", "is not for these projections: %s", d.Reshaped)
	f.add(d.PositionsLost != "", Fault, "do what docs/operations.md says of lost positions; until then no projector starts", "cannot tell repeats: %s", d.PositionsLost)
	for _, document := range d.Unnoted {
		f.add(true, Warning, "remove it where it is none of a projector's; else see lost positions in docs/operations.md", "has a document that nobody may have written: %s", document)
	}
	for _, emptied := range d.Emptied {
		f.add(true, Fault, "restore the collection, or build another version of its projection; then remove the note: docs/operations.md", "shows less than was applied: %s", emptied)
	}
	f.add(d.Incomplete > 0, Fault, "look at projector incomplete list; end a rebuild that is under way with --cancel, and build the projection anew: projector rebuild --projection NAME; "+
		"or accept it with projector incomplete accept: docs/operations.md, \"Sending again\"",
		"lacks what was resent of %d aggregates, which had begun here later or for which it was lost on its way", d.Incomplete)
	for _, view := range slices.Sorted(maps.Keys(d.Blind)) {
		on := d.Blind[view]
		f.add(on == "", Warning, "run projector setup with a role that may create views", "has no view %q: readers see nothing", view)
		f.add(on != "", Warning, "restore the collection from a backup, or run projector switch with --force in the environment of the version "+
			"that readers are to see; where nothing was applied yet, projector setup", "has the view %q on %q, which is not there: readers see nothing", view, on)
	}
	f.add(d.Apart > 0, Fault, "look at projector sources list; where one source goes on from the other say so with projector sources continue, then run projector parked redrive --all; "+
		`else end what sends it, and discard its events: docs/operations.md, "When a source has another name"`,
		"has %d aggregates halted for events of another source", d.Apart)
	f.add(d.Early > 0, Fault, `no redrive applies them: docs/operations.md, "Aggregates that began in the middle"`,
		"has %d aggregates halted for events from before those that they began with here", d.Early)
	f.add(d.Halted > 0 || d.Parked > 0, Warning, "look at projector parked list, mend the projection, and redrive",
		"has %d halted aggregates and %d parked messages", d.Halted, d.Parked)
	f.add(d.Skipped > 0, Warning, "look at projector skipped list, mend the projections, and do what it says in repair; or accept it with projector skipped accept",
		"has %d records of skipped events, which documents lack", d.Skipped)
	return f.all
}

// String is action and collection.
func (l Lack) String() string { return l.Action + " on " + l.Collection }

// Privilege is what connectionStatus shows of a user.
type Privilege struct {
	Resource struct {
		DB          *string `bson:"db"`
		Collection  *string `bson:"collection"`
		AnyResource bool    `bson:"anyResource"`
	} `bson:"resource"`
	Actions []string `bson:"actions"`
}

// Lacking returns the actions that no privilege gives on a collection. An empty
// name of a database or collection stands for all of them.
func Lacking(privileges []Privilege, database string, collections, actions []string) []Lack {
	var lacking []Lack
	for _, collection := range collections {
		for _, action := range actions {
			given := func(p Privilege) bool {
				r := &p.Resource
				covers := r.AnyResource || r.DB != nil && r.Collection != nil &&
					(*r.DB == "" || *r.DB == database) && (*r.Collection == "" || *r.Collection == collection)
				return covers && slices.Contains(p.Actions, action)
			}
			if !slices.ContainsFunc(privileges, given) {
				lacking = append(lacking, Lack{action, collection})
			}
		}
	}
	return lacking
}
