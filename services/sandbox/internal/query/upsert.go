package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// Upsert makes the document that an upsert inserts where nothing matched the
// filter: the filter's equalities, then the update. A present _id is first; it
// may be missing, then the caller adds one in front.
func (u *Update) Upsert(f *Filter) (bson.Raw, error) {
	if u.replacement != nil {
		return u.upsertReplacement(f)
	}
	seed, err := f.seed()
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
func (u *Update) upsertReplacement(f *Filter) (bson.Raw, error) {
	id, _ := f.id()
	b := bsonkit.NewBuilder(nil)
	b.Append("_id", id)
	return finishUpsert(b.Finish(), u.replacement)
}

func (f *Filter) id() (bson.RawValue, bool) {
	if f == nil {
		return bson.RawValue{}, false
	}
	for _, e := range f.equalities {
		if e.path == "_id" {
			return e.value, true
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
	if len(made) > maxDocument {
		return nil, mongoerr.New(17420, "Document to upsert is larger than %d", maxDocument)
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

// seed is a document of the values that the filter demands, in the order of
// their paths.
func (f *Filter) seed() (bson.Raw, error) {
	if f == nil {
		return bsonkit.NewBuilder(nil).Finish(), nil
	}
	equalities, err := sortedEqualities(f.equalities)
	if err != nil {
		return nil, err
	}
	b := bsonkit.NewBuilder(make([]byte, 0, 128))
	for i, e := range equalities {
		if strings.Contains(e.path, ".") {
			return nest(b.Finish(), equalities[i:])
		}
		b.Append(e.path, e.value)
	}
	return b.Finish(), nil
}

// nest adds values whose paths may be dotted.
func nest(doc bson.Raw, equalities []equality) (bson.Raw, error) {
	a := &application{operatorUpdate: &operatorUpdate{}, root: bsonkit.NewNode(bsonkit.Document(doc))}
	for _, e := range equalities {
		if err := a.walk(a.root, strings.Split(e.path, "."), "", setTo{e.value}); err != nil {
			return nil, err
		}
	}
	return a.root.Bytes(), nil
}

// sortedEqualities refuses paths for which the filter demands two values.
func sortedEqualities(equalities []equality) ([]equality, error) {
	if len(equalities) < 2 {
		return equalities, nil
	}
	sorted := slices.Clone(equalities)
	slices.SortStableFunc(sorted, func(a, b equality) int {
		return slices.Compare(strings.Split(a.path, "."), strings.Split(b.path, "."))
	})
	for i := 1; i < len(sorted); i++ {
		switch a, b := sorted[i-1].path, sorted[i].path; {
		case a == b:
			return nil, mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice", a)
		case strings.HasPrefix(b, a+"."):
			return nil, mongoerr.New(mongoerr.NotSingleValueField, "cannot infer query fields to set, both paths '%s' and '%s' are matched", a, b)
		}
	}
	return sorted, nil
}
