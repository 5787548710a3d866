package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

// findArguments are those of find.
type findArguments struct {
	filter, sort, projection bson.Raw
	hint                     engine.Hint
	skip, limit              int64
	batchSize                int
	single                   bool
}

func find(ctx context.Context, c *call, r *reply) error {
	f, err := c.parseFind()
	if err != nil {
		return err
	}
	first, _ := c.body.IndexErr(0)
	name, ok := first.Value().StringValueOK()
	if !ok {
		return mongoerr.New(mongoerr.FailedToParse, "Failed to parse: find: collection name has invalid type %s", first.Value().Type)
	}
	ns := engine.Namespace{DB: c.db, Collection: name}
	if err := ns.Validate(); err != nil {
		return err
	}
	src, err := c.findSource(ctx, ns, f)
	if err != nil {
		return err
	}
	return c.open(ctx, r, c.newCursor(ns, src), f.batchSize, f.single)
}

func (c *call) parseFind() (findArguments, error) {
	f := findArguments{batchSize: firstBatch}
	a := arguments{mismatch: mongoerr.FailedToParse}
	var collation bson.RawValue
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name, "allowDiskUse", "allowPartialResults", "noCursorTimeout", "oplogReplay":
		case "filter":
			f.filter = a.document(name, v)
		case "sort":
			f.sort = a.document(name, v)
		case "projection":
			f.projection = a.document(name, v)
		case "hint":
			f.hint = a.hint(name, v)
		case "skip":
			f.skip = a.count(name, v)
		case "limit":
			f.limit = a.count(name, v)
		case "batchSize":
			f.batchSize = int(min(a.count(name, v), noLimit))
		case "singleBatch":
			f.single = a.boolean(name, v)
		case "collation":
			collation = v
		case "tailable", "awaitData", "returnKey", "showRecordId":
			if a.boolean(name, v) {
				a.fail(mongoerr.NotImplemented, "find with %s is not supported", name)
			}
		case "min", "max":
			if len(a.document(name, v)) > len(emptyDocument) {
				a.fail(mongoerr.NotImplemented, "find with %s is not supported", name)
			}
		default:
			if !isGeneric(name) {
				a.fail(mongoerr.FailedToParse, "Failed to parse: Unrecognized field '%s'.", name)
			}
		}
	}
	if collation.Type != 0 {
		a.collation(collation, len(f.sort) > len(emptyDocument), f.filter)
	}
	return f, a.err
}

// findSource compiles a find and begins to run it.
func (c *call) findSource(ctx context.Context, ns engine.Namespace, f findArguments) (source, error) {
	env := c.env(nil)
	filter, err := query.CompileFilter(f.filter, env)
	if err != nil {
		return nil, err
	}
	projection, err := query.CompileProjection(f.projection, filter, env)
	if err != nil {
		return nil, err
	}
	if natural, ok := bsonkit.Get(f.sort, "$natural"); ok {
		n, _ := natural.AsInt64OK()
		f.hint, f.sort = engine.Hint{Natural: true, Reverse: n < 0}, nil
	}
	sort, err := query.CompileSort(f.sort)
	if err != nil {
		return nil, err
	}
	docs, err := c.documents(ctx, ns, filter, sort, f)
	if err != nil {
		return nil, err
	}
	return &findResults{docs: docs, projection: projection, skip: f.skip, limit: f.limit}, nil
}

// puller gives documents one by one, nil at the end.
type puller interface{ Next() (bson.Raw, error) }

// documents gives a find's documents in the order of its sort.
func (c *call) documents(
	ctx context.Context, ns engine.Namespace, filter *query.Filter, sort *query.Sort, f findArguments,
) (puller, error) {
	if ns == oplogNamespace {
		return c.oplogDocuments(filter, f.hint), nil
	}
	view, err := c.view(ns)
	if err != nil {
		return nil, err
	}
	docs, err := view.Documents(filter, sort, f.hint)
	if err != nil {
		return nil, err
	}
	if docs.Sorted {
		return docs, nil
	}
	wanted := int64(0)
	if f.limit > 0 {
		wanted = f.skip + f.limit
	}
	sorted, err := sortDocuments(ctx, docs, sort, wanted)
	if err != nil {
		return nil, err
	}
	return &sortedDocuments{docs: sorted}, nil
}

// findResults is the tail of a find: skip, limit and projection.
type findResults struct {
	docs       puller
	projection *query.Projection
	skip       int64
	limit      int64 // 0 for none
	given      int64
}

func (s *findResults) next() (bson.Raw, error) {
	for !s.exhausted() {
		doc, err := s.docs.Next()
		if doc == nil || err != nil {
			return nil, err
		}
		if s.skip > 0 {
			s.skip--
			continue
		}
		s.given++
		return s.projection.Apply(doc)
	}
	return nil, nil
}

func (s *findResults) exhausted() bool { return s.limit > 0 && s.given == s.limit }
func (s *findResults) close()          {}
