package modify

import (
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// mutation is what an operator makes of one value.
type mutation interface {
	// apply is given the present value, which may be missing, and says what
	// becomes of it.
	apply(present bson.RawValue, at place) (outcome, error)
	// demands says that a path through something that is no document is an
	// error, because the mutation would have to make fields there.
	demands() bool
}

// place names what is changed, for error texts.
type place struct {
	path string
	doc  *bsonkit.Node
}

type outcome struct {
	kind  outcomeKind
	value bson.RawValue
	// appended are the last elements of value, where the rest of an array
	// stayed as it was; only they are new to a change stream.
	appended int
}

type outcomeKind int

const (
	unchanged outcomeKind = iota
	set
	removed
)

// application is one run of an operatorUpdate over a document.
type application struct {
	*operatorUpdate
	root      *bsonkit.Node
	element   string // what $ stands for, empty if nothing
	changed   bool
	inserting bool
	updated   *bsonkit.Builder // nil where nobody asks for a delta
	removed   []string
	told      int // bytes of the paths in updated and removed
	// touched are the paths that were walked (true) and those above them (false),
	// kept if there may be conflicts.
	touched map[string]bool
	walked  int // bytes of their paths
	placed  int // bytes of the values that were set
	// arrays are those of which $[] or $[name] changed elements; inside is set
	// while such an element is being changed.
	arrays []*changedArray
	inside bool
}

// changedArray is an array of which some elements have changed. A change stream
// reports one element whole, or the array whole for several.
type changedArray struct {
	path    string
	changed map[int]bool
}

func (u *operatorUpdate) apply(doc bson.Raw, f *match.Filter) (Applied, error) {
	a := &application{operatorUpdate: u, root: bsonkit.NewNode(bsonkit.Document(doc)), updated: bsonkit.NewBuilder(make([]byte, 0, 128))}
	if u.positional {
		if i := f.Position(doc); i >= 0 {
			a.element = strconv.Itoa(i)
		}
	}
	if err := a.run(); err != nil || !a.changed {
		return Applied{Doc: doc}, err
	}
	a.logArrays()
	made := a.root.Bytes()
	if err := checkSameID(doc, made); err != nil {
		return Applied{}, err
	}
	return Applied{Doc: made, Changed: true, Delta: a.delta(doc, made)}, nil
}

// delta is nil where the paths are longer than maxTold.
func (a *application) delta(before, after bson.Raw) *Delta {
	if a.told > maxTold {
		return nil
	}
	delta := &Delta{Updated: a.updated.Finish(), Removed: a.removed}
	delta.Ambiguous = disambiguated(before, after, delta.Updated, delta.Removed)
	if len(delta.Ambiguous) > maxTold {
		return nil
	}
	return delta
}

// tells counts a path that is told of, and reports whether there is place for it.
func (a *application) tells(path int) bool {
	a.told += path
	return a.told <= maxTold
}

// checkSameID refuses a changed _id, where there was one.
func checkSameID(before, after bson.Raw) error {
	old, had := bsonkit.Get(before, "_id")
	id, has := bsonkit.Get(after, "_id")
	if had && (!has || !bsonkit.Equal(old, id)) {
		return mongoerr.New(mongoerr.ImmutableField, "Performing an update on the path '_id' would modify the immutable field '_id'")
	}
	if !had && has {
		return checkID(id)
	}
	return nil
}

func (a *application) run() error {
	for i := range a.changes {
		c := &a.changes[i]
		if c.onInsert && !a.inserting {
			continue
		}
		if c.from != nil {
			if err := a.rename(c); err != nil {
				return err
			}
			continue
		}
		parts, err := a.resolve(c.parts)
		if err != nil {
			return err
		}
		if err := a.walk(a.root, parts, "", c.do); err != nil {
			return err
		}
	}
	return nil
}

// resolve puts the index of the matched element in the place of $.
func (a *application) resolve(parts []string) ([]string, error) {
	i := -1
	if a.positional {
		i = slices.Index(parts, "$")
	}
	if i < 0 {
		return parts, nil
	}
	if a.element == "" {
		return nil, mongoerr.New(mongoerr.BadValue, "The positional operator did not find the match needed from the query.")
	}
	parts = slices.Clone(parts)
	parts[i] = a.element
	return parts, nil
}
