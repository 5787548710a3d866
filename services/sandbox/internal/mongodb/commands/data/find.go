package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

func find(ctx context.Context, c *command.Call, r *command.Reply) error {
	f, err := parseFind(c, c.Body)
	if err != nil {
		return err
	}
	first, _ := c.Body.IndexErr(0)
	name, ok := first.Value().StringValueOK()
	if !ok {
		return mongoerr.New(mongoerr.FailedToParse, "Failed to parse: find: collection name has invalid type %s", first.Value().Type)
	}
	ns := oplog.Namespace{DB: c.DB, Collection: name}
	if err := ns.Validate(); err != nil {
		return err
	}
	if c.Server.Engine.Options(ns).View != nil {
		if err := f.notOfViews(); err != nil {
			return err
		}
	}
	src, err := throughView(ctx, c, ns, f.collation, f.stages()...)
	if src == nil && err == nil {
		src, err = findSource(ctx, c, ns, f)
	}
	if err != nil {
		return err
	}
	cur := c.NewCursor(ns, src)
	if tail, tailable := src.(*tailSource); tailable {
		return openTail(c, r, cur, tail, f.batchSize)
	}
	if f.batchSize == 0 && c.Txn == nil && ns != oplogNamespace {
		// Nothing is kept open of what is not there, even if nothing was asked for yet.
		_, there := c.Server.Engine.Collection(ns)
		f.single = f.single || !there
	}
	return c.Open(ctx, r, cur, f.batchSize, f.single)
}

// findSource compiles a find and begins to run it.
func findSource(ctx context.Context, c *command.Call, ns oplog.Namespace, f findArguments) (command.Source, error) {
	env := c.Env(nil)
	f.collation = c.CollationOf(ns, f.collation)
	env.Collation = f.collation
	filter, err := match.CompileQuery(f.filter, env)
	if err != nil {
		return nil, err
	}
	projection, err := query.CompileProjection(f.projection, filter, env)
	if err != nil {
		return nil, err
	}
	if natural, ok := bsonkit.Get(f.sort, "$natural"); ok {
		n, _ := natural.AsInt64OK()
		f.hint, f.sort = storage.Hint{Natural: true, Reverse: n < 0}, nil
	}
	sort, err := query.CompileSort(f.sort)
	if err != nil {
		return nil, err
	}
	if f.tailable {
		return tailOf(c, ns, filter, projection, f)
	}
	results := &findResults{project: projection.Apply, skip: f.skip, limit: f.limit}
	if ns == oplogNamespace {
		results.docs = oplogDocuments(c, filter, f.hint)
		return results, nil
	}
	if ns.Collection == viewsCollection {
		views, err := viewDocuments(c, ns.DB, filter)
		if err != nil {
			return nil, err
		}
		if results.docs = views; sort != nil {
			results.docs, err = inOrder(ctx, views, sort.In(f.collation), f)
		}
		return results, err
	}
	view, err := c.View(ns)
	if err != nil {
		return nil, err
	}
	docs, err := view.Documents(filter, sort.In(f.collation), f.hint)
	if err != nil {
		return nil, err
	}
	docs.Interrupted = c.Interrupted
	results.docs = docs
	switch {
	case f.returnKey:
		results.project = func(doc bson.Raw) (bson.Raw, error) { return docs.IndexKey(doc), nil }
	case f.showRecordID:
		results.docs, results.project = &numbered{docs}, showNumber(projection.Apply)
	}
	if !docs.Sorted {
		results.docs, err = inOrder(ctx, results.docs, sort.In(f.collation), f)
	}
	return results, err
}

// tailOf opens a tail of a capped collection. One that is not there gives an
// empty result.
func tailOf(c *command.Call, ns oplog.Namespace, filter *match.Filter, projection *query.Projection, f findArguments) (command.Source, error) {
	tail, err := c.Server.Engine.Tail(ns, filter)
	if err != nil {
		return nil, err
	}
	if tail == nil {
		return &command.DocSource{}, nil
	}
	source := &tailSource{tail: tail, project: projection.Apply, skip: f.skip, left: -1, await: f.awaitData}
	if f.limit > 0 {
		source.left = f.limit
	}
	return source, nil
}

// inOrder sorts a find's documents.
func inOrder(ctx context.Context, docs command.Puller, sort *query.Sort, f findArguments) (command.Puller, error) {
	wanted := int64(0)
	if f.limit > 0 {
		wanted = f.skip + f.limit
	}
	sorted, err := sortDocuments(ctx, docs, sort, wanted, query.SortMemory(expression.Env{Spills: f.spills}))
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
	docs    command.Puller
	project func(bson.Raw) (bson.Raw, error)
	skip    int64
	limit   int64 // 0 for none
	given   int64
}

func (s *findResults) Next() (bson.Raw, error) {
	for !s.Exhausted() {
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

func (s *findResults) Exhausted() bool { return s.limit > 0 && s.given == s.limit }
func (s *findResults) Close()          {}
