package modify

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Upsert makes the document that an upsert inserts where nothing matched the
// filter: the filter's equalities, then the update. A present _id is first; it
// may be missing, then the caller adds one in front.
func (u *Update) Upsert(f *match.Filter) (bson.Raw, error) {
	if u.replacement != nil {
		return u.upsertReplacement(f)
	}
	seed, err := seedOf(f)
	if err != nil {
		return nil, err
	}
	var made bson.Raw
	if u.pipeline != nil {
		made, _, err = u.pipeline.Each(seed)
	} else {
		made, err = u.operators.insert(seed)
	}
	if err != nil {
		return nil, err
	}
	if err := checkStorable(made); err != nil {
		return nil, err
	}
	return finishUpsert(seed, made)
}

// upsertReplacement takes nothing from the filter but the _id.
func (u *Update) upsertReplacement(f *match.Filter) (bson.Raw, error) {
	var ofID []match.Equality
	for _, e := range f.Equalities() {
		if e.Path == "_id" || strings.HasPrefix(e.Path, "_id.") {
			ofID = append(ofID, e)
		}
	}
	if _, err := sortedEqualities(ofID); err != nil {
		return nil, err
	}
	id, _ := idOf(f)
	b := bsonkit.NewBuilder(nil)
	b.Append("_id", id)
	return finishUpsert(b.Finish(), u.replacement)
}

func idOf(f *match.Filter) (bson.RawValue, bool) {
	for _, e := range f.Equalities() {
		if e.Path == "_id" {
			return e.Value, true
		}
	}
	return bson.RawValue{}, false
}

func finishUpsert(seed, made bson.Raw) (bson.Raw, error) {
	wanted, given := bsonkit.Get(seed, "_id")
	id, has := bsonkit.Get(made, "_id")
	if given && has && !bsonkit.Equal(wanted, id) {
		return nil, mongoerr.New(mongoerr.ImmutableField,
			"Performing an update on the path '_id' would modify the immutable field '_id'")
	}
	if !has {
		id = wanted
	}
	if err := checkID(id); err != nil {
		return nil, err
	}
	made = withID(id, made)
	if len(made) > bsonkit.MaxDocument {
		return nil, tooLarge(true)
	}
	return made, nil
}

func (u *operatorUpdate) insert(seed bson.Raw) (bson.Raw, error) {
	a := &application{operatorUpdate: u, root: bsonkit.NewNode(bsonkit.Document(seed)), inserting: true}
	if err := a.run(); err != nil {
		return nil, err
	}
	made := a.root.Bytes()
	return made, checkSameID(seed, made)
}

// seedOf is a document of the values that the filter demands, in the order of
// their paths.
func seedOf(f *match.Filter) (bson.Raw, error) {
	equalities, err := sortedEqualities(f.Equalities())
	if err != nil {
		return nil, err
	}
	b := bsonkit.NewBuilder(make([]byte, 0, 128))
	for i, e := range equalities {
		if strings.Contains(e.Path, ".") {
			return nest(b.Finish(), equalities[i:])
		}
		b.Append(e.Path, e.Value)
	}
	return b.Finish(), nil
}

// nest adds values whose paths may be dotted.
func nest(doc bson.Raw, equalities []match.Equality) (bson.Raw, error) {
	a := &application{operatorUpdate: &operatorUpdate{}, root: bsonkit.NewNode(bsonkit.Document(doc))}
	for _, e := range equalities {
		if err := a.walk(a.root, strings.Split(e.Path, "."), "", setTo{e.Value}); err != nil {
			return nil, err
		}
	}
	return a.root.Bytes(), nil
}

// sortedEqualities refuses paths for which the filter demands two values.
func sortedEqualities(equalities []match.Equality) ([]match.Equality, error) {
	if len(equalities) < 2 {
		return equalities, nil
	}
	sorted := slices.Clone(equalities)
	slices.SortStableFunc(sorted, func(a, b match.Equality) int {
		return slices.Compare(strings.Split(a.Path, "."), strings.Split(b.Path, "."))
	})
	for i := 1; i < len(sorted); i++ {
		switch a, b := sorted[i-1].Path, sorted[i].Path; {
		case a == b:
			return nil, mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice", a)
		case strings.HasPrefix(b, a+"."):
			return nil, mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, both paths '%s' and '%s' are matched", a, b)
		}
	}
	return sorted, nil
}
