package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// idleWait bounds how long the server holds back an empty reply.
const idleWait = 500 * time.Millisecond

// change is one write to a document.
type change struct{ raw bson.Raw }

const (
	// reopenPause is how long a stream that failed waits before it is opened again.
	reopenPause = 200 * time.Millisecond
	// reopenTime is how long it is tried.
	reopenTime = time.Minute
)

// follow opens a change stream on the collection and returns a function that
// hands over every write from now on, until ctx ends, which is no error. A
// stream that fails is opened again where it stood, so a server that goes away
// and comes back hides nothing.
func follow(ctx context.Context, collection *mongo.Collection, each func(change), set ...func(*options.ChangeStreamOptionsBuilder)) (run func(context.Context) error, err error) {
	stream, err := open(ctx, collection, nil, set)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
		var failing time.Time // since when; zero while it does not
		for {
			for stream.Next(ctx) {
				each(change{stream.Current})
			}
			if ctx.Err() != nil {
				return nil
			}
			failure := stream.Err()
			if failing.IsZero() {
				failing = time.Now()
			}
			if lost(failure) || time.Since(failing) > reopenTime {
				return fmt.Errorf("watch %s: %w", collection.Name(), failure)
			}
			pause := time.NewTimer(reopenPause)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
			if again, err := open(ctx, collection, stream.ResumeToken(), set); err == nil {
				_ = stream.Close(ctx)
				stream, failing = again, time.Time{}
			}
		}
	}, nil
}

func open(ctx context.Context, collection *mongo.Collection, after bson.Raw, set []func(*options.ChangeStreamOptionsBuilder)) (*mongo.ChangeStream, error) {
	opts := options.ChangeStream().SetMaxAwaitTime(idleWait).SetBatchSize(5000)
	for _, s := range set {
		s(opts)
	}
	if after != nil {
		opts.SetResumeAfter(after)
	}
	stream, err := collection.Watch(ctx, mongo.Pipeline{}, opts)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", collection.Name(), err)
	}
	return stream, nil
}

// Codes with which a server says that the history a stream needs is gone.
const (
	changeStreamFatalError  = 280
	changeStreamHistoryLost = 286
)

func lost(err error) bool {
	server, ok := errors.AsType[mongo.ServerError](err)
	return ok && (server.HasErrorCode(changeStreamHistoryLost) || server.HasErrorCode(changeStreamFatalError))
}

// id returns the document's id where it is a string.
func (c change) id() string {
	id, _ := c.raw.Lookup("documentKey", "_id").StringValueOK()
	return id
}

// field returns a field as the write left it; false where the write did not
// touch it. An update names a nested field by its path or with its parent.
func (c change) field(parent, name string) (bson.RawValue, bool) {
	var paths [][]string
	switch op, _ := c.raw.Lookup("operationType").StringValueOK(); op {
	case "insert", "replace":
		paths = [][]string{{"fullDocument", parent, name}}
	case "update":
		paths = [][]string{
			{"updateDescription", "updatedFields", parent + "." + name},
			{"updateDescription", "updatedFields", parent, name},
		}
	}
	for _, path := range paths {
		if v, err := c.raw.LookupErr(compact(path)...); err == nil {
			return v, true
		}
	}
	return bson.RawValue{}, false
}

// keeps tells whether a write leaves those fields of a parent as they were that it does
// not name.
func (c change) keeps(parent string) bool {
	op, _ := c.raw.Lookup("operationType").StringValueOK()
	_, err := c.raw.LookupErr("updateDescription", "updatedFields", parent)
	return op == "update" && err != nil
}

// compact drops the parent of a top-level field.
func compact(path []string) []string {
	var out []string
	for _, p := range path {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}
