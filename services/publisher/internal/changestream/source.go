package changestream

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
)

// Source says what is read.
type Source struct {
	Database *mongo.Database
	// Collections are those that are read; none are all of the database.
	Collections []string
	// Filter is a $match on changes of documents, run by the server; empty takes
	// all. What happens to a collection as a whole is read in any case.
	Filter bson.D
	// FullDocument is what an update shows of the document: updateLookup,
	// whenAvailable, required, or empty for nothing.
	FullDocument options.FullDocument
	// BeforeChange is whether a change shows the document before it:
	// whenAvailable, required, or empty for no.
	BeforeChange options.FullDocument
	// ReadBytes is how many bytes one Read of a stream hands out, but for the last change;
	// 0 means 4 MiB.
	ReadBytes int
}

// Of is the source of one collection's changes as they are.
func Of(collection *mongo.Collection) Source {
	return Source{Database: collection.Database(), Collections: []string{collection.Name()}}
}

// String names what is read.
func (s Source) String() string {
	names := strings.Join(s.Collections, ",")
	if names == "" {
		names = "*"
	}
	return s.Database.Name() + "." + names
}

// documentOperations are what happens to single documents.
var documentOperations = bson.A{"insert", "update", "replace", "delete"}

// Pipeline is what the server applies to the changes.
func (s Source) Pipeline() mongo.Pipeline {
	// What becomes one of the collections has another one's name until then.
	return s.pipeline(bson.D{{Key: "to.coll", Value: bson.D{{Key: "$in", Value: s.Collections}}}})
}

// pipeline is the pipeline with other changes that a list of collections lets
// through. A resume token is good for the pipeline that it came from, whatever
// these are: no change to a document is one of them.
func (s Source) pipeline(others ...any) mongo.Pipeline {
	pipeline := mongo.Pipeline{}
	if len(s.Collections) > 1 {
		// What has no collection is about the whole database, or the stream itself.
		pipeline = append(pipeline, match(bson.D{{Key: "$or", Value: append(bson.A{
			bson.D{{Key: "ns.coll", Value: bson.D{{Key: "$in", Value: s.Collections}}}},
			bson.D{{Key: "ns.coll", Value: bson.D{{Key: "$exists", Value: false}}}},
		}, others...)}}))
	}
	if len(s.Filter) > 0 {
		pipeline = append(pipeline, match(bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "operationType", Value: bson.D{{Key: "$nin", Value: documentOperations}}}},
			s.Filter,
		}}}))
	}
	return pipeline
}

func match(filter bson.D) bson.D { return bson.D{{Key: "$match", Value: filter}} }

// Check asks the server for a stream of the source, from now on, and closes it
// again. It returns a *HaltError when the server refuses the stream as it is
// asked for, and another error when it does not answer.
func (s Source) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return s.check(ctx, options.ChangeStream)
}

// CheckAfter is Check for a stream that goes on after a token. That may take as long
// as the source answers other questions; waiting is told from time to time how long it
// has taken.
func (s Source) CheckAfter(ctx context.Context, token []byte, waiting func(time.Duration)) error {
	attempt, end := s.whileHeard(ctx, waiting)
	defer end()
	err := s.check(attempt, func() *options.ChangeStreamOptionsBuilder {
		return options.ChangeStream().SetStartAfter(bson.Raw(token))
	})
	if isFatal(err) {
		if found, lookErr := s.splitOtherwise(attempt, token); found || lookErr != nil {
			err = lookErr
		}
	}
	if gaveUp := context.Cause(attempt); err != nil && ctx.Err() == nil && gaveUp != nil {
		return fmt.Errorf("%w: %w", gaveUp, err)
	}
	return err
}

func (s Source) check(ctx context.Context, placed func() *options.ChangeStreamOptionsBuilder) error {
	stream, _, err := s.watchSplit(ctx, func() *options.ChangeStreamOptionsBuilder { return placed().SetBatchSize(1) })
	if err != nil {
		if halt := classifyOpening(err); halt != nil {
			return halt
		}
		return fmt.Errorf("try the change stream of %s: %w", s, err)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = stream.Close(closing) // a cursor that is not closed times out on the server
	return nil
}

// watch opens a stream as it is read, whose pipeline has further stages at its end.
func (s Source) watch(ctx context.Context, o *options.ChangeStreamOptionsBuilder, last ...bson.D) (*mongo.ChangeStream, error) {
	o.SetMaxAwaitTime(await)
	if s.FullDocument != "" {
		o.SetFullDocument(s.FullDocument)
	}
	if s.BeforeChange != "" {
		o.SetFullDocumentBeforeChange(s.BeforeChange)
	}
	return s.begin(ctx, append(s.Pipeline(), last...), o)
}

// begin opens a stream of any pipeline with a majority read concern.
func (s Source) begin(ctx context.Context, pipeline mongo.Pipeline, o *options.ChangeStreamOptionsBuilder) (*mongo.ChangeStream, error) {
	database := s.Database.Client().Database(s.Database.Name(), options.Database().SetReadConcern(readconcern.Majority()))
	if len(s.Collections) == 1 {
		return database.Collection(s.Collections[0]).Watch(ctx, pipeline, o)
	}
	return database.Watch(ctx, pipeline, o)
}

// wholeDatabase is the collection that the server names of a stream of a database.
const wholeDatabase = "$cmd.aggregate"

// kill tells the server that a cursor of the source is not needed.
func (s Source) kill(ctx context.Context, cursor int64) {
	collection := wholeDatabase
	if len(s.Collections) == 1 {
		collection = s.Collections[0]
	}
	s.Database.RunCommand(ctx, bson.D{{Key: "killCursors", Value: collection}, {Key: "cursors", Value: bson.A{cursor}}})
}
