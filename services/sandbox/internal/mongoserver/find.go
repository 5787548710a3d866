package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

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
	src, err := c.throughView(ctx, ns, f.collation, f.stages()...)
	if src == nil && err == nil {
		src, err = c.findSource(ctx, ns, f)
	}
	if err != nil {
		return err
	}
	cur := c.newCursor(ns, src)
	if tail, tailable := src.(*tailSource); tailable {
		cur.tail = tail
		return c.openTail(r, cur, f.batchSize)
	}
	return c.open(ctx, r, cur, f.batchSize, f.single)
}

// findSource compiles a find and begins to run it.
func (c *call) findSource(ctx context.Context, ns engine.Namespace, f findArguments) (source, error) {
	env := c.env(nil)
	f.collation = c.collationOf(ns, f.collation)
	env.Collation = f.collation
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
	if f.tailable {
		return c.tailOf(ns, filter, projection, f)
	}
	results := &findResults{project: projection.Apply, skip: f.skip, limit: f.limit}
	if ns == oplogNamespace {
		results.docs = c.oplogDocuments(filter, f.hint)
		return results, nil
	}
	view, err := c.view(ns)
	if err != nil {
		return nil, err
	}
	docs, err := view.Documents(filter, sort.In(f.collation), f.hint)
	if err != nil {
		return nil, err
	}
	results.docs = docs
	switch {
	case f.returnKey:
		results.project = func(doc bson.Raw) (bson.Raw, error) { return docs.IndexKey(doc), nil }
	case f.showRecordID:
		results.docs, results.project = &numbered{docs}, showNumber(projection.Apply)
	}
	if !docs.Sorted {
		results.docs, err = c.inOrder(ctx, results.docs, sort.In(f.collation), f)
	}
	return results, err
}

// tailOf opens a tail of a capped collection. One that is not there gives an
// empty result.
func (c *call) tailOf(ns engine.Namespace, filter *query.Filter, projection *query.Projection, f findArguments) (source, error) {
	tail, err := c.server.engine.Tail(ns, filter)
	if err != nil {
		return nil, err
	}
	if tail == nil {
		return &docSource{}, nil
	}
	return &tailSource{tail: tail, project: projection.Apply, await: f.awaitData}, nil
}

// puller gives documents one by one, nil at the end.
type puller interface{ Next() (bson.Raw, error) }

// inOrder sorts a find's documents.
func (c *call) inOrder(ctx context.Context, docs puller, sort *query.Sort, f findArguments) (puller, error) {
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

// recordID is the field that showRecordId adds.
const recordID = "$recordId"

// numbered adds the number of its record to each document.
type numbered struct{ *engine.Documents }

func (n *numbered) Next() (bson.Raw, error) {
	doc, err := n.Documents.Next()
	if doc == nil || err != nil {
		return nil, err
	}
	return withNumber(doc, n.Record()), nil
}

func withNumber(doc bson.Raw, record int64) bson.Raw {
	at, made := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)+len(recordID)+10))
	made = append(made, doc[4:len(doc)-1]...)
	made = bsoncore.AppendInt64Element(made, recordID, record)
	made, _ = bsoncore.AppendDocumentEnd(made, at) // at is where it begins
	return made
}

// showNumber keeps the number that a projection may have left out.
func showNumber(project func(bson.Raw) (bson.Raw, error)) func(bson.Raw) (bson.Raw, error) {
	return func(doc bson.Raw) (bson.Raw, error) {
		made, err := project(doc)
		if _, kept := bsonkit.Get(made, recordID); err != nil || kept {
			return made, err
		}
		number, _ := bsonkit.Get(doc, recordID)
		return withNumber(made, number.Int64()), nil
	}
}

// findResults is the tail of a find: skip, limit and projection.
type findResults struct {
	docs    puller
	project func(bson.Raw) (bson.Raw, error)
	skip    int64
	limit   int64 // 0 for none
	given   int64
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
		return s.project(doc)
	}
	return nil, nil
}

func (s *findResults) exhausted() bool { return s.limit > 0 && s.given == s.limit }
func (s *findResults) close()          {}
